"""Every distribution of PyMC that can be observed, one value or vector for each row, in the smallest model that has it.

Those that cannot be rows are here too, with the words of their refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from coreset_mcmc_benchmarks.interop.catalogue.entry import Register

DISTRIBUTIONS = Register("PyMC")
Rows = Callable[[np.random.Generator, int], Any]
Declare = Callable[[np.ndarray, Any], Any]


def of_rows(name: str, rows: Rows, *, glm: bool = False, refused: str = "") -> Callable[[Declare], Declare]:
    """Register the model in which ``declare(x, rows)`` observes rows beside a covariate."""

    def register(declare: Declare) -> Declare:
        def make(size: int) -> pm.Model:
            rng = np.random.default_rng(len(name))
            x, observed = rng.normal(size=size), rows(rng, size)
            with pm.Model() as model:
                declare(x, observed)
            return model

        DISTRIBUTIONS.add(name, glm=glm, refused=refused)(make)
        return declare

    return register


def line(x: np.ndarray) -> Any:
    """An intercept and a slope."""
    return pm.Normal("intercept", 0, 1) + pm.Normal("slope", 0, 1) * x


def rate(x: np.ndarray) -> Any:
    """A positive line."""
    return pm.math.exp(line(x))


def share(x: np.ndarray) -> Any:
    """A line between zero and one."""
    return pm.math.sigmoid(line(x))


def spread(name: str = "spread") -> Any:
    """A positive parameter."""
    return pm.HalfNormal(name, 2)


def ordered_cuts(count: int = 2) -> Any:
    """Cutpoints."""
    start = np.linspace(-1.0, 1.0, count)
    return pm.Normal("cuts", 0, 2, shape=count, transform=pm.distributions.transforms.ordered, initval=start)


def real(rng: np.random.Generator, size: int) -> np.ndarray:
    """Any numbers."""
    return rng.normal(0.5, 1.2, size=size)


def positive(rng: np.random.Generator, size: int) -> np.ndarray:
    """Positive numbers."""
    return rng.gamma(2.0, 1.0, size=size)


def unit(rng: np.random.Generator, size: int) -> np.ndarray:
    """Numbers between zero and one."""
    return rng.beta(2.0, 3.0, size=size)


def counts(rng: np.random.Generator, size: int) -> np.ndarray:
    """Counts with many zeros."""
    return rng.poisson(2.0, size=size) * rng.integers(2, size=size)


def below(upper: int) -> Rows:
    """Whole numbers from zero to below ``upper``."""
    return lambda rng, size: rng.integers(upper, size=size)


def zeros_and_positive(rng: np.random.Generator, size: int) -> np.ndarray:
    """Zeros among positive numbers."""
    return positive(rng, size) * rng.integers(2, size=size)


def vectors(rng: np.random.Generator, size: int) -> np.ndarray:
    """Three numbers in each row."""
    return rng.normal(size=(size, 3))


def zero_sums(rng: np.random.Generator, size: int) -> np.ndarray:
    """Three numbers in each row that add up to zero."""
    drawn = vectors(rng, size)
    centred: np.ndarray = drawn - drawn.mean(axis=1, keepdims=True)
    return centred


def compositions(rng: np.random.Generator, size: int) -> np.ndarray:
    """Three shares in each row."""
    return rng.dirichlet([1.0, 2.0, 3.0], size=size)


def tables(rng: np.random.Generator, size: int) -> np.ndarray:
    """Ten things in three classes, in each row."""
    return rng.multinomial(10, [0.2, 0.3, 0.5], size=size)


# Continuous.
of_rows("Normal", real, glm=True)(lambda x, y: pm.Normal("y", line(x), spread(), observed=y))
of_rows("StudentT", real, glm=True)(
    lambda x, y: pm.StudentT("y", nu=pm.Gamma("nu", 2, 0.1), mu=line(x), sigma=spread(), observed=y)
)
of_rows("SkewStudentT", real)(
    lambda x, y: pm.SkewStudentT(
        "y", a=pm.Gamma("a", 4, 1), b=pm.Gamma("b", 4, 1), mu=line(x), sigma=spread(), observed=y
    )
)
of_rows("Laplace", real, glm=True)(lambda x, y: pm.Laplace("y", line(x), spread(), observed=y))
of_rows("AsymmetricLaplace", real, glm=True)(
    lambda x, y: pm.AsymmetricLaplace("y", b=spread(), kappa=spread("kappa"), mu=line(x), observed=y)
)
of_rows("Cauchy", real, glm=True)(lambda x, y: pm.Cauchy("y", line(x), spread(), observed=y))
of_rows("Logistic", real, glm=True)(lambda x, y: pm.Logistic("y", line(x), spread(), observed=y))
of_rows("Gumbel", real, glm=True)(lambda x, y: pm.Gumbel("y", line(x), spread(), observed=y))
of_rows("Moyal", real, glm=True)(lambda x, y: pm.Moyal("y", line(x), spread(), observed=y))
of_rows("SkewNormal", real)(
    lambda x, y: pm.SkewNormal("y", mu=line(x), sigma=spread(), alpha=pm.Normal("alpha", 0, 2), observed=y)
)
of_rows("ExGaussian", real)(lambda x, y: pm.ExGaussian("y", mu=line(x), sigma=spread(), nu=spread("nu"), observed=y))
of_rows("Uniform", unit)(lambda x, y: pm.Uniform("y", -spread("low"), 1 + spread("high") + pm.math.exp(x), observed=y))
of_rows("Triangular", unit)(
    lambda x, y: pm.Triangular("y", lower=-spread("low"), c=0.5, upper=1 + spread("high"), observed=y)
)
of_rows("TruncatedNormal", positive)(
    lambda x, y: pm.TruncatedNormal("y", line(x), spread(), lower=0.0, upper=50.0, observed=y)
)
of_rows("TruncatedNormal, from below", positive)(
    lambda x, y: pm.TruncatedNormal("y", line(x), spread(), lower=0.0, observed=y)
)
of_rows("LogNormal", positive, glm=True)(lambda x, y: pm.LogNormal("y", line(x), spread(), observed=y))
of_rows("Lognormal", positive, glm=True)(lambda x, y: pm.Lognormal("y", line(x), spread(), observed=y))
of_rows("HalfNormal", positive)(lambda x, y: pm.HalfNormal("y", rate(x), observed=y))
of_rows("HalfCauchy", positive)(lambda x, y: pm.HalfCauchy("y", rate(x), observed=y))
of_rows("HalfStudentT", positive)(lambda x, y: pm.HalfStudentT("y", nu=4, sigma=rate(x), observed=y))
of_rows("Exponential", positive, glm=True)(lambda x, y: pm.Exponential("y", rate(x), observed=y))
of_rows("Gamma", positive, glm=True)(lambda x, y: pm.Gamma("y", mu=rate(x), sigma=spread(), observed=y))
of_rows("InverseGamma", positive)(lambda x, y: pm.InverseGamma("y", alpha=1 + spread(), beta=rate(x), observed=y))
of_rows("ChiSquared", positive)(lambda x, y: pm.ChiSquared("y", nu=rate(x), observed=y))
of_rows("Weibull", positive)(lambda x, y: pm.Weibull("y", alpha=spread(), beta=rate(x), observed=y))
of_rows("Wald", positive, glm=True)(lambda x, y: pm.Wald("y", mu=rate(x), lam=spread(), observed=y))
of_rows("Pareto", lambda rng, size: 1 + positive(rng, size))(
    lambda x, y: pm.Pareto("y", alpha=rate(x), m=0.9, observed=y)
)
of_rows("Rice", positive)(lambda x, y: pm.Rice("y", nu=rate(x), sigma=spread(), observed=y))
of_rows("PolyaGamma", positive, refused="PolyaGamma")(lambda x, y: pm.PolyaGamma("y", h=1.0, z=line(x), observed=y))
of_rows("Beta", unit, glm=True)(lambda x, y: pm.Beta("y", mu=share(x), nu=2 + spread(), observed=y))
of_rows("Kumaraswamy", unit)(lambda x, y: pm.Kumaraswamy("y", a=spread(), b=rate(x), observed=y))
of_rows("LogitNormal", unit, glm=True)(lambda x, y: pm.LogitNormal("y", line(x), spread(), observed=y))
of_rows("VonMises", lambda rng, size: rng.vonmises(0.3, 2.0, size=size))(
    lambda x, y: pm.VonMises("y", mu=line(x), kappa=spread(), observed=y)
)
of_rows("Interpolated", lambda rng, size: rng.uniform(-0.5, 0.5, size=size), refused="SplineWrapper")(
    lambda x, y: (
        pm.Normal("z", pm.Normal("mean"), 1, observed=x),
        pm.Interpolated("y", np.linspace(-1, 1, 20), np.exp(-(np.linspace(-1, 1, 20) ** 2)), observed=y),
    )
)

# Counts and categories.
of_rows("Bernoulli", below(2), glm=True)(lambda x, y: pm.Bernoulli("y", logit_p=line(x), observed=y))
of_rows("Binomial", below(8), glm=True)(lambda x, y: pm.Binomial("y", n=10, p=share(x), observed=y))
of_rows("BetaBinomial", below(8))(lambda x, y: pm.BetaBinomial("y", n=10, alpha=spread(), beta=rate(x), observed=y))
of_rows("Poisson", counts, glm=True)(lambda x, y: pm.Poisson("y", rate(x), observed=y))
of_rows("NegativeBinomial", counts, glm=True)(
    lambda x, y: pm.NegativeBinomial("y", mu=rate(x), alpha=spread(), observed=y)
)
of_rows("Geometric", lambda rng, size: 1 + counts(rng, size), glm=True)(
    lambda x, y: pm.Geometric("y", p=share(x), observed=y)
)
of_rows("HyperGeometric", below(4))(lambda x, y: pm.HyperGeometric("y", N=60 + spread(), k=20, n=10, observed=y))
of_rows("DiscreteUniform", below(4))(
    lambda x, y: pm.DiscreteUniform("y", lower=0, upper=pt.floor(5 + spread()).astype("int64"), observed=y)
)
of_rows("DiscreteWeibull", counts)(lambda x, y: pm.DiscreteWeibull("y", q=share(x), beta=spread(), observed=y))
of_rows("ZeroInflatedPoisson", counts)(
    lambda x, y: pm.ZeroInflatedPoisson("y", psi=pm.Beta("psi", 1, 1), mu=rate(x), observed=y)
)
of_rows("ZeroInflatedBinomial", below(8))(
    lambda x, y: pm.ZeroInflatedBinomial("y", psi=pm.Beta("psi", 1, 1), n=10, p=share(x), observed=y)
)
of_rows("ZeroInflatedNegativeBinomial", counts)(
    lambda x, y: pm.ZeroInflatedNegativeBinomial("y", psi=pm.Beta("psi", 1, 1), mu=rate(x), alpha=spread(), observed=y)
)
of_rows("HurdlePoisson", counts)(lambda x, y: pm.HurdlePoisson("y", psi=pm.Beta("psi", 1, 1), mu=rate(x), observed=y))
of_rows("HurdleNegativeBinomial", counts)(
    lambda x, y: pm.HurdleNegativeBinomial("y", psi=pm.Beta("psi", 1, 1), mu=rate(x), alpha=spread(), observed=y)
)
of_rows("HurdleGamma", zeros_and_positive)(
    lambda x, y: pm.HurdleGamma("y", psi=pm.Beta("psi", 1, 1), mu=rate(x), sigma=spread(), observed=y)
)
of_rows("HurdleLogNormal", zeros_and_positive)(
    lambda x, y: pm.HurdleLogNormal("y", psi=pm.Beta("psi", 1, 1), mu=line(x), sigma=spread(), observed=y)
)
of_rows("Categorical", below(3), glm=True)(
    lambda x, y: pm.Categorical(
        "y",
        p=pm.math.softmax(x[:, None] * pm.Normal("slopes", shape=3) + pm.Normal("levels", shape=3), axis=1),
        observed=y,
    )
)
of_rows("OrderedLogistic", below(3), glm=True)(
    lambda x, y: pm.OrderedLogistic("y", eta=pm.Normal("slope") * x, cutpoints=ordered_cuts(), observed=y)
)
of_rows("OrderedProbit", below(3), glm=True)(
    lambda x, y: pm.OrderedProbit("y", eta=pm.Normal("slope") * x, cutpoints=ordered_cuts(), observed=y)
)

# Vectors in each row.
of_rows("MvNormal", vectors)(
    lambda x, y: pm.MvNormal(
        "y", mu=pm.Normal("mean", shape=3),
        chol=pm.LKJCholeskyCov("chol", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))[0], observed=y,
    )
)  # fmt: skip
of_rows("MvStudentT", vectors)(
    lambda x, y: pm.MvStudentT("y", nu=5, mu=pm.Normal("mean", shape=3), scale=np.eye(3), observed=y)
)
of_rows("Dirichlet", compositions)(lambda x, y: pm.Dirichlet("y", a=1 + pm.HalfNormal("a", 2, shape=3), observed=y))
of_rows("Multinomial", tables)(lambda x, y: pm.Multinomial("y", n=10, p=pm.Dirichlet("p", np.ones(3)), observed=y))
of_rows("DirichletMultinomial", tables)(
    lambda x, y: pm.DirichletMultinomial("y", n=10, a=1 + pm.HalfNormal("a", 2, shape=3), observed=y)
)
of_rows("OrderedMultinomial", tables)(
    lambda x, y: pm.OrderedMultinomial("y", eta=pm.Normal("slope") * x, cutpoints=ordered_cuts(), n=10, observed=y)
)
of_rows("StickBreakingWeights", lambda rng, size: rng.dirichlet(np.ones(4), size=size))(
    lambda x, y: pm.StickBreakingWeights("y", alpha=1 + spread(), K=3, observed=y)
)
of_rows("ZeroSumNormal", zero_sums)(lambda x, y: pm.ZeroSumNormal("y", sigma=spread(), observed=y))

# Made of other distributions.
of_rows("Mixture", real)(
    lambda x, y: pm.Mixture(
        "y", w=pm.Dirichlet("w", np.ones(2)),
        comp_dists=[pm.Normal.dist(line(x), 1.0), pm.StudentT.dist(nu=4, mu=0, sigma=spread())], observed=y,
    )
)  # fmt: skip
of_rows("NormalMixture", real)(
    lambda x, y: pm.NormalMixture(
        "y", w=pm.Dirichlet("w", np.ones(2)), mu=ordered_cuts(), sigma=pm.HalfNormal("sigma", 1, shape=2), observed=y
    )
)
of_rows("Censored, normal", lambda rng, size: np.minimum(real(rng, size), 1.0))(
    lambda x, y: pm.Censored("y", pm.Normal.dist(line(x), spread()), lower=None, upper=1.0, observed=y)
)
of_rows("Censored, a bound in each row", lambda rng, size: np.minimum(real(rng, size), 1.0))(
    lambda x, y: pm.Censored(
        "y", pm.Normal.dist(line(x), spread()), lower=None, upper=np.where(y < 1.0, np.inf, 1.0), observed=y
    )
)
of_rows("Censored, Weibull", lambda rng, size: np.minimum(positive(rng, size), 3.0))(
    lambda x, y: pm.Censored("y", pm.Weibull.dist(spread(), rate(x)), lower=None, upper=3.0, observed=y)
)
of_rows("Truncated, normal", positive)(
    lambda x, y: pm.Truncated("y", pm.Normal.dist(line(x), spread()), lower=0.0, observed=y)
)
of_rows("Truncated, gamma", lambda rng, size: np.minimum(positive(rng, size), 5.0))(
    lambda x, y: pm.Truncated("y", pm.Gamma.dist(2.0, rate(x)), upper=6.0, observed=y)
)
of_rows("Truncated, Poisson", lambda rng, size: 1 + counts(rng, size))(
    lambda x, y: pm.Truncated("y", pm.Poisson.dist(rate(x)), lower=1, observed=y)
)
of_rows("CustomDist", positive)(
    lambda x, y: pm.CustomDist("y", rate(x), logp=lambda value, r: pt.log(r) - r * value, observed=y)
)
of_rows("DensityDist", positive)(
    lambda x, y: pm.DensityDist("y", rate(x), logp=lambda value, r: pt.log(r) - r * value, observed=y)
)
of_rows("Flat", real)(lambda x, y: (pm.Normal("z", pm.Normal("mean"), 1, observed=x), pm.Flat("y", observed=y)))
of_rows("HalfFlat", positive)(
    lambda x, y: (pm.Normal("z", pm.Normal("mean"), 1, observed=x), pm.HalfFlat("y", observed=y))
)
of_rows("DiracDelta", lambda rng, size: np.ones(size))(
    lambda x, y: (pm.Normal("z", pm.Normal("mean"), 1, observed=x), pm.DiracDelta("y", 1.0, observed=y))
)

# Rows that depend on each other, or that are no rows.
of_rows("AR", real, refused="one log-density for all rows together")(
    lambda x, y: pm.AR("y", [pm.Normal("rho", 0, 0.3)], sigma=spread(), init_dist=pm.Normal.dist(0, 1), observed=y)
)
of_rows("GARCH11", real, refused="one log-density for all rows together")(
    lambda x, y: pm.GARCH11("y", omega=1.0, alpha_1=pm.Beta("a", 1, 4), beta_1=0.2, initial_vol=1.0, observed=y)
)
of_rows("GaussianRandomWalk", real, refused="one log-density for all rows together")(
    lambda x, y: pm.GaussianRandomWalk("y", mu=pm.Normal("mu"), sigma=1.0, init_dist=pm.Normal.dist(0, 1), observed=y)
)
of_rows("RandomWalk", real, refused="one log-density for all rows together")(
    lambda x, y: pm.RandomWalk(
        "y", innovation_dist=pm.Normal.dist(pm.Normal("mu")), init_dist=pm.Normal.dist(0, 1), observed=y
    )
)
of_rows("MvGaussianRandomWalk", vectors, refused="one log-density for all rows together")(
    lambda x, y: pm.MvGaussianRandomWalk(
        "y", mu=pm.Normal("mu", shape=3), cov=np.eye(3), init_dist=pm.MvNormal.dist(np.zeros(3), np.eye(3)), observed=y
    )
)
of_rows("MvStudentTRandomWalk", vectors, refused="one log-density for all rows together")(
    lambda x, y: pm.MvStudentTRandomWalk(
        "y", nu=5, mu=pm.Normal("mu", shape=3), scale=np.eye(3),
        init_dist=pm.MvNormal.dist(np.zeros(3), np.eye(3)), observed=y,
    )
)  # fmt: skip
of_rows("EulerMaruyama", real, refused="one log-density for all rows together")(
    lambda x, y: pm.EulerMaruyama(
        "y", dt=0.1, sde_fn=lambda place, speed: (-speed * place, 1.0), sde_pars=[spread()],
        init_dist=pm.Normal.dist(0, 1), observed=y,
    )
)  # fmt: skip


def ring(size: int) -> np.ndarray:
    """Neighbours on a circle."""
    near = np.zeros((size, size))
    near[np.arange(size), (np.arange(size) + 1) % size] = 1.0
    return near + near.T


of_rows("CAR", real, refused="one log-density for all rows together")(
    lambda x, y: pm.CAR("y", mu=pm.Normal("mu") + np.zeros(len(y)), W=ring(len(y)), alpha=0.5, tau=1.0, observed=y)
)
of_rows("ICAR", real, refused="one log-density for all rows together")(
    lambda x, y: pm.ICAR("y", W=ring(len(y)), sigma=spread(), observed=y)
)
of_rows("MatrixNormal", vectors, refused="one log-density for all rows together")(
    lambda x, y: pm.MatrixNormal(
        "y", mu=pm.Normal("mu", shape=3) + np.zeros((len(y), 3)), rowcov=np.eye(len(y)), colcov=np.eye(3), observed=y
    )
)
of_rows("KroneckerNormal", real, refused="one log-density for all rows together")(
    lambda x, y: pm.KroneckerNormal(
        "y", mu=pm.Normal("mu") + np.zeros(len(y)), covs=[np.eye(2), np.eye(len(y) // 2)], observed=y
    )
)

of_rows(
    "Wishart",
    lambda rng, size: np.einsum("nij,nkj->nik", *2 * [rng.normal(size=(size, 2, 5))]),
    refused="no log-density of such rows in PyMC",
)(lambda x, y: pm.Wishart("y", nu=5, V=spread() * np.eye(2), observed=y))
of_rows(
    "LKJCorr", lambda rng, size: rng.uniform(-0.3, 0.3, size=(size, 3)), refused="no log-density of such rows in PyMC"
)(lambda x, y: pm.LKJCorr("y", n=3, eta=1 + spread(), observed=y))
of_rows("LKJCholeskyCov", lambda rng, size: rng.normal(size=(size, 3)), refused="no log-density of such rows in PyMC")(
    lambda x, y: pm.LKJCholeskyCov(
        "y", n=2, eta=1 + spread(), sd_dist=pm.Exponential.dist(1.0), compute_corr=False, observed=y
    )
)
of_rows("Simulator", real, refused="draws random numbers")(
    lambda x, y: pm.Simulator(
        "y", lambda rng, mean, size=None: rng.normal(mean, size=size), pm.Normal("mean"), observed=y
    )
)
