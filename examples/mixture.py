"""A mixture of two Gaussians with labels summed out: components, and the density that they make.

python examples/mixture.py [--quick] [--rows 100000] [--output mixture.png]
"""

from __future__ import annotations

import argparse

import jax.numpy as jnp
import matplotlib
import numpy as np
from jax.nn import log_sigmoid, sigmoid
from jax.scipy.stats import norm

import coreset_mcmc as cm

matplotlib.use("agg")
from matplotlib import pyplot


def parts(position):
    """Unconstrained numbers to what a reader wants: the second mean lies above the first, so labels cannot switch."""
    means = jnp.stack([position["low"], position["low"] + jnp.exp(position["log_gap"])])
    return {"share": sigmoid(position["logit"]), "means": means, "scales": jnp.exp(position["log_scales"])}


def log_prior(position):
    """Normal priors on the unconstrained scale."""
    return -0.5 * (
        position["low"] ** 2 / 25
        + position["log_gap"] ** 2
        + position["logit"] ** 2
        + jnp.sum(position["log_scales"] ** 2)
    )


def log_likelihood(position, rows):
    """log(share N(y | first) + (1 - share) N(y | second))."""
    shown = parts(position)
    first, second = (norm.logpdf(rows["y"], shown["means"][k], shown["scales"][k]) for k in (0, 1))
    return jnp.logaddexp(log_sigmoid(position["logit"]) + first, log_sigmoid(-position["logit"]) + second)


def main(arguments: list[str] | None = None) -> None:
    """Fit, print, plot density bands over the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and draws")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--output", default="mixture.png")
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    num_rows = 2_000 if options.quick else options.rows
    is_first = rng.uniform(size=num_rows) < 0.35
    y = np.where(is_first, rng.normal(-1.5, 0.7, num_rows), rng.normal(1.0, 1.2, num_rows))

    start = {
        "low": np.array(-1.0),
        "log_gap": np.array(0.5),
        "logit": np.array(0.0),
        "log_scales": np.zeros(2),
    }
    model = cm.Model(
        log_prior, log_likelihood, start, constrain=parts, dims={"means": ("component",), "scales": ("component",)}
    )
    fit = cm.fit(
        model,
        {"y": y},
        coreset_size=100 if options.quick else 500,
        draws=200 if options.quick else 1000,
        random_seed=0,
        progressbar=not options.quick,
        coords={"component": ["low", "high"]},
    )
    print(fit.summary().to_string())
    print(fit)

    draws = fit.posterior.stack(sample=("chain", "draw"))
    grid = np.linspace(y.min(), y.max(), 200)
    share, means, scales = (draws[name].to_numpy() for name in ("share", "means", "scales"))
    densities = [np.asarray(norm.pdf(grid[:, None], means[k], scales[k])) for k in (0, 1)]
    band = np.quantile(share * densities[0] + (1 - share) * densities[1], [0.025, 0.975], axis=1)
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.hist(y, bins=100, density=True, color="0.85", label=f"all {num_rows} rows")
    axes.fill_between(grid, *band, color="C3", alpha=0.6, label="95 % band of the density")
    axes.scatter(
        fit.coreset.columns["y"],
        np.full(fit.coreset.size, -0.01),
        s=fit.coreset.weights / num_rows * 2000,
        color="C0",
        alpha=0.4,
        label="coreset, by weight",
    )
    axes.set_xlabel("y")
    axes.legend(frameon=False)
    figure.savefig(options.output, dpi=120)
    print("saved", options.output)


if __name__ == "__main__":
    main()
