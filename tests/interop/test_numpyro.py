"""NumPyro models, unchanged: which terms are prior and which are rows, and what cannot be a coreset."""

from __future__ import annotations

import warnings
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.diagnostics import effective_sample_size
from numpyro.infer.util import constrain_fn, potential_energy

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.interop.models.numpyro_gallery import cases, divorce, lung

SIZE = 40
X = np.random.default_rng(0).normal(size=SIZE)
Y = np.random.default_rng(1).normal(X, 0.5)
GROUP = np.random.default_rng(2).integers(4, size=SIZE)
DATA = {"x": X, "y": Y}


def as_jax(data):
    return jax.tree.map(jnp.asarray, data)


@partial(jax.jit, static_argnums=0)
def total(model: cm.Model, position, data):
    return model.log_prior(position) + jnp.sum(model.log_likelihood(position, data))


@cache
def bound_case(name: str) -> cm.Model:
    model, data, static = cases()[name]
    return cm.from_numpyro(model, static=static).bind(data)


def numpyros_total(model, data, static):
    """NumPyro's own log density of the unconstrained model, compiled."""
    return jax.jit(lambda position: -potential_energy(model, (), {**as_jax(data), **static}, position))


def random_positions(model: cm.Model, count: int = 3):
    start = model.initial_position(jax.random.key(0))
    rng = np.random.default_rng(0)
    return [jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), start) for _ in range(count)]


@pytest.mark.full
@pytest.mark.parametrize("name", list(cases()))
def test_totals_are_those_of_numpyro(name):
    """Prior and rows together are NumPyro's log density of the unconstrained model, Jacobians included."""
    model, data, static = cases()[name]
    bound, theirs = bound_case(name), numpyros_total(model, data, static)
    for position in random_positions(bound):
        assert np.isfinite(theirs(position))
        np.testing.assert_allclose(total(bound, position, as_jax(data)), theirs(position), rtol=1e-8)


@pytest.mark.full
@pytest.mark.parametrize("name", list(cases()))
def test_values_shown_are_those_of_numpyro(name):
    """Constrained parameters, and deterministic sites but those with a value for each row."""
    model, data, static = cases()[name]
    bound = bound_case(name)
    position = random_positions(bound, 1)[0]
    keywords = {**as_jax(data), **static}
    expected = jax.jit(lambda at: constrain_fn(model, (), keywords, at, return_deterministic=True))(position)
    shown = jax.jit(bound.constrain)(position)
    assert set(expected) - set(shown) == ({"mu"} if name == "divorce" else set())
    for site, value in shown.items():
        np.testing.assert_allclose(value, expected[site], rtol=1e-12)
    again = jax.jit(bound.unconstrain)({site: shown[site] for site in position}, random_positions(bound, 2)[1])
    for site in position:
        np.testing.assert_allclose(again[site], position[site], rtol=1e-6, atol=1e-6)


def many_sites(x, y):
    b = numpyro.sample("b", dist.Normal(0, 1))
    s = numpyro.sample("s", dist.LogNormal(0, 1))
    u = numpyro.sample("u", dist.Uniform(-s, s))
    numpyro.factor("soft_constraint", -(b**2))
    numpyro.sample("anchor", dist.Normal(b, 1), obs=1.0)
    with numpyro.plate("data", x.shape[0]):
        numpyro.factor("each_row", -b * x**2)
        with handlers.mask(mask=y > 0):
            numpyro.sample("positive", dist.Normal(b * x, s), obs=y)
        with handlers.scale(scale=0.5):
            numpyro.sample("half", dist.StudentT(3.0, b + u, s), obs=y)
        numpyro.sample("pair", dist.Normal(b, s).expand([2]).to_event(1), obs=jnp.stack([x, y], -1))


def two_outputs(x, y):
    with numpyro.plate("output", 2, dim=-1):
        b = numpyro.sample("b", dist.Normal(0, 1))
        with numpyro.plate("data", x.shape[0], dim=-2):
            numpyro.sample("obs", dist.Normal(b * x[:, None], 1), obs=jnp.stack([x, y], -1))


def flat_prior(x, y):
    b = numpyro.sample("b", dist.ImproperUniform(dist.constraints.positive, (), ()))
    numpyro.sample("obs", dist.Normal(b * x, 1), obs=y)


def optional_column(x, y, offset=None):
    b = numpyro.sample("b", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("obs", dist.Normal(b * x + (0.0 if offset is None else offset), 1), obs=y)


@pytest.mark.full
@pytest.mark.parametrize("model", [many_sites, two_outputs, flat_prior, optional_column])
def test_several_sites_factors_masks_scales_and_plates(model):
    data = {**DATA, "offset": None} if model is optional_column else DATA
    factors = {"soft_constraint": "prior", "each_row": "row"} if model is many_sites else {}
    bound = cm.from_numpyro(model, factors=factors).bind(data)
    theirs = numpyros_total(model, DATA, {})
    for position in random_positions(bound):
        np.testing.assert_allclose(total(bound, position, as_jax(data)), theirs(position), rtol=1e-8)
    drawn = jax.jit(bound.predictive)(jax.random.key(0), random_positions(bound, 1)[0], as_jax(data))
    assert all(values.shape[0] == SIZE for values in drawn.values())
    assert not any(np.array_equal(values.reshape(SIZE, -1)[:, 0], Y) for values in drawn.values())


def in_plate(size=None, subsample_size=None, index=False):
    def model(x, y):
        b = numpyro.sample("b", dist.Normal(0, 1))
        with numpyro.plate("data", size or x.shape[0], subsample_size and subsample_size(x)) as rows:
            chosen = (x[rows], y[rows]) if index else (x, y)
            numpyro.sample("obs", dist.Normal(b * chosen[0], 1), obs=chosen[1])

    return model


@pytest.mark.parametrize(
    "model",
    [
        in_plate(None, lambda x: 10, index=True),
        in_plate(SIZE, lambda x: x.shape[0]),
        in_plate(SIZE, lambda x: 10, True),
    ],
    ids=["rows taken by the plate", "minibatches passed in", "both"],
)
def test_the_scale_of_a_subsample_plate_is_undone(model):
    bound = cm.from_numpyro(model).bind(DATA)
    plain = cm.from_numpyro(in_plate()).bind(DATA)
    few = jax.tree.map(lambda leaf: leaf[:7], as_jax(DATA))
    for position in random_positions(bound):
        np.testing.assert_allclose(
            total(bound, position, as_jax(DATA)), total(plain, position, as_jax(DATA)), rtol=1e-12
        )
        np.testing.assert_allclose(bound.log_likelihood(position, few), plain.log_likelihood(position, few), rtol=1e-12)


def slope():
    return numpyro.sample("b", dist.Normal(0, 1))


def local_latents(x, y):
    b = slope()
    with numpyro.plate("data", x.shape[0]):
        z = numpyro.sample("z", dist.Normal(0, 1))
        numpyro.sample("obs", dist.Normal(b * x + z, 1), obs=y)


def hard_coded_latents(x, y):
    z = numpyro.sample("z", dist.Normal(0, 1).expand([SIZE]))
    numpyro.sample("obs", dist.Normal(z * x, 1), obs=y)


def autoregression(x, y):
    b, previous = slope(), jnp.concatenate([jnp.zeros(1), y[:-1]])
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("obs", dist.Normal(b * previous, 1), obs=y)


def scanned(x, y):
    b = slope()

    def step(carry, row):
        numpyro.sample("obs", dist.Normal(b * carry + row[0], 1), obs=row[1])
        return row[1], None

    scan(step, 0.0, (x, y))


def state_space(x, y):
    b = slope()

    def step(carry, row):
        z = numpyro.sample("z", dist.Normal(b * carry, 1))
        numpyro.sample("obs", dist.Normal(z, 1), obs=row)
        return z, None

    scan(step, 0.0, y)


def centred_inside(x, y):
    numpyro.sample("obs", dist.Normal(slope() * (x - x.mean()), 1), obs=y)


def gaussian_process(x, y):
    covariance = jnp.exp(-((x[:, None] - x) ** 2)) + jnp.eye(x.shape[0]) * jnp.exp(slope())
    numpyro.sample("obs", dist.MultivariateNormal(0.0, covariance), obs=y)


def rows_as_event(x, y):
    numpyro.sample("obs", dist.Normal(slope() * x, 1).to_event(1), obs=y)


def prior_from_data(x, y):
    b = numpyro.sample("b", dist.Normal(y.mean(), 1))
    numpyro.sample("obs", dist.Normal(b * x, 1), obs=y)


def summed_factor(x, y):
    b = slope()
    numpyro.factor("sum", -0.5 * jnp.sum((y - b * x) ** 2))
    numpyro.sample("obs", dist.Normal(b * x, 1), obs=y)


def discrete_latent(x, y):
    k = numpyro.sample("k", dist.Bernoulli(0.5))
    numpyro.sample("obs", dist.Normal(slope() * x + k, 1), obs=y)


def parameter(x, y):
    numpyro.sample("obs", dist.Normal(numpyro.param("b", 0.0) * x, 1), obs=y)


def response_left_out(x, y):
    b = slope()
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("obs", dist.Normal(b * x, 1))


def counts_groups(x, y):
    a = numpyro.sample("a", dist.Normal(0, 1).expand([len(np.unique(x))]))
    numpyro.sample("obs", dist.Normal(a[0] * x, 1), obs=y)


def reads_outside(y):
    numpyro.sample("obs", dist.Normal(slope() * jnp.asarray(X), 1), obs=y)


def scaled_by_hand(x, y):
    b = slope()
    with handlers.scale(scale=SIZE / x.shape[0]):
        numpyro.sample("obs", dist.Normal(b * x, 1), obs=y)


def subsampled_groups(x, y):
    with numpyro.plate("groups", 10, subsample_size=2):
        a = numpyro.sample("a", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("obs", dist.Normal(a.sum() * x, 1), obs=y)


def imputed(x, y):
    numpyro.sample("obs", dist.Normal(slope() * x, 1), obs=y, obs_mask=y > 0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (in_plate(SIZE), r"plate 'data' has the fixed size 40.*numpyro\.plate\('data', x\.shape\[0\]\)"),
        (local_latents, r"latent site 'z': got shape \(40,\) with 40 rows.*value for each row. Integrate it out"),
        (hard_coded_latents, r"on a few rows.*from its arguments"),
        (autoregression, r"changes with the order of the rows.*time series"),
        (scanned, r"changes with the order of the rows.*time series"),
        (state_space, r"latent site 'z'.*value for each row"),
        (centred_inside, r"changes with the number or the values of the other rows.*centring"),
        (gaussian_process, r"observed site 'obs': got one log-probability.*Rows that depend on each other"),
        (rows_as_event, r"observed site 'obs': got one log-probability.*to_event"),
        (prior_from_data, r"changes with the rows \(site 'b'\).*static="),
        (summed_factor, r"changes with the rows \(site 'sum'\).*one value per row"),
        (discrete_latent, r"discrete latent variable that all rows share.*draw it in the plate of rows"),
        (parameter, r"param site 'b'.*numpyro\.sample"),
        (response_left_out, r"latent site 'obs'.*If it is the response, pass its values"),
        (counts_groups, r"values of the data as Python numbers.*static="),
        (reads_outside, r"on a few rows.*not from arrays around it"),
        (scaled_by_hand, r"the number or the values of the other rows.*N / batch size"),
        (subsampled_groups, r"plate 'groups': got a random subsample of 2 of 10"),
        (imputed, r"latent site 'obs_unobserved'"),
    ],
)
def test_what_has_no_coreset_is_refused_with_advice(model, message):
    data = {"y": Y} if model is reads_outside else DATA
    with pytest.raises(cm.InputError, match=message):
        cm.from_numpyro(model).bind(data)


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({}, {"x": X, "z": Y}, r"\['z'\]; expected names of arguments of the model \(x, y\)"),
        ({}, {"x": X}, r"nothing for the arguments \['y'\]"),
        ({}, X, r"got ndarray; expected a mapping from argument names"),
        ({"static": {"x": 1.0}}, DATA, r"static: got \['x'\], also in the data"),
        ({"plate": "rows"}, DATA, r"plate: got 'rows'; expected a plate of the model"),
        ({"factors": {"soft": "prior"}}, DATA, r"factors\['soft'\]"),
    ],
)
def test_arguments_that_do_not_fit_are_named(options, data, message):
    with pytest.raises(cm.InputError, match=message):
        cm.from_numpyro(in_plate(), **options).bind(data)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"soft_constraint": "row"}, r"got 'row', but its log-factor has shape \(\)"),
        ({"each_row": "prior"}, r"got 'prior', but its log-factor has shape \(5,\)"),
        ({"each_row": "likelihood"}, r'expected "prior" or "row"'),
    ],
)
def test_a_factor_must_be_what_the_user_says(factors, message):
    with pytest.raises(cm.InputError, match=message):
        cm.from_numpyro(many_sites, factors=factors).bind(DATA)


def test_a_summary_of_rows_is_left_out_and_named():
    def model(x, y):
        b = slope()
        numpyro.deterministic("twice", 2 * b)
        numpyro.deterministic("squares", jnp.sum((y - b * x) ** 2))
        numpyro.sample("obs", dist.Normal(b * x, 1), obs=y)

    with pytest.warns(UserWarning, match=r"\['squares'\] summarise rows"):
        bound = cm.from_numpyro(model).bind(DATA)
    assert set(bound.constrain({"b": jnp.ones(())})) == {"b", "twice"}


def test_an_unbound_model_says_so():
    with pytest.raises(cm.InputError, match="before it has seen data"):
        cm.from_numpyro(divorce).log_prior({"a": 0.0})
    with pytest.raises(cm.InputError, match="Pass the function itself"):
        cm.from_numpyro("model")


@pytest.fixture(scope="module")
def fitted():
    """A hierarchical model on small data, with a handler around it and names for the groups."""
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        _, data, static = cases(size=2_000)["lung"]
        model = cm.from_numpyro(lung, static=static, coords={"patients": list("abcde")})
        options = {"coreset_size": 150, "draws": 500, "tune": 200, "chains": 4, "random_seed": 1, "progressbar": False}
        return cm.fit(model, data, initvals={"sigma": 0.5}, var_names=["~mean_b"], **options)


@pytest.mark.full
def test_results_carry_names_dims_and_values(fitted):
    posterior = fitted.posterior
    assert set(posterior.data_vars) == {"mean_a", "scale_a", "scale_b", "a", "b", "sigma"}
    assert posterior["a"].dims == ("chain", "draw", "patients")
    assert list(posterior["patients"].to_numpy()) == list("abcde")
    assert float(posterior["sigma"].min()) > 0
    assert fitted.tree["observed_data"]["obs"].shape == (150,)
    rows = fitted.tree["observed_data"]["coreset_row"].to_numpy()
    np.testing.assert_array_equal(fitted.tree["observed_data"]["obs"], fitted.data["fvc"][rows])
    log_sigma = fitted.tree["unconstrained_posterior"]["sigma"]
    np.testing.assert_allclose(np.exp(log_sigma), posterior["sigma"], rtol=1e-12)
    assert "mean_b" in fitted.positions()


def monte_carlo_errors(draws):
    """Standard errors of the mean and of the logarithm of the standard deviation, from draws (chains, draws, ...)."""
    squares = (draws - draws.mean((0, 1))) ** 2
    of_mean = draws.std((0, 1)) / np.sqrt(effective_sample_size(draws))
    of_log_spread = squares.std((0, 1)) / (2 * squares.mean((0, 1)) * np.sqrt(effective_sample_size(squares)))
    return of_mean, of_log_spread


@pytest.mark.full
@pytest.mark.statistical
def test_posterior_is_that_of_numpyros_own_nuts(fitted):
    """Means and spreads agree within Monte Carlo error and what the coreset's own error allows.

    A KL of k nats from a Gaussian moves a mean by at most sqrt(2 k) standard deviations, and a standard deviation by a
    factor whose logarithm is at most about sqrt(k). Beyond that both may differ by five standard errors of the two runs
    together: passed by chance in fewer than 1 of 10^4 runs for 12 means and 12 spreads.
    """
    from numpyro.infer import MCMC, NUTS

    _, data, static = cases(size=2_000)["lung"]
    mcmc = MCMC(NUTS(lung), num_warmup=300, num_samples=300, progress_bar=False)
    mcmc.run(jax.random.key(0), **as_jax(data), **static)
    assert fitted.kl_estimate < 0.02
    for name in ("a", "b", "sigma", "mean_a"):
        theirs, ours = np.asarray(mcmc.get_samples(True)[name]), fitted.posterior[name].to_numpy()
        shift = np.abs(ours.mean((0, 1)) - theirs.mean((0, 1)))
        stretch = np.abs(np.log(ours.std((0, 1)) / theirs.std((0, 1))))
        errors = [np.hypot(*both) for both in zip(monte_carlo_errors(ours), monte_carlo_errors(theirs), strict=True)]
        assert np.all(shift < 5 * errors[0] + np.sqrt(2 * 0.02) * theirs.std((0, 1))), name
        assert np.all(stretch < 5 * errors[1] + np.sqrt(0.02)), name


@pytest.mark.full
def test_predictions_and_loo_of_all_rows(fitted):
    """Coverage and the number of effective parameters are what they must be, within five standard errors.

    Of 50 draws the quantile 0.055 lies at 1 + 0.055 * 49 of the 51 gaps between them; with as much at the other end the
    rest is the chance of a row to be inside. The number of rows inside is binomial.

    The intercepts and slopes of 5 patients and the spread are 11 parameters that the data know. Leave-one-out adds up
    their variances, each with a relative error of sqrt(2 / 200) from 200 draws, 0.3 in all; rows contribute about as
    much as they vary, 11 / sqrt(2 000) times 1.5, 0.4. A KL of 0.02 changes the sum by up to 2 sqrt(11 * 0.02), 0.9.
    """
    summary = fitted.predict(draws=50)["posterior_predictive"]["obs"]
    assert dict(summary.sizes) == {"row": 2_000, "statistic": 5}
    expected_coverage = 1 - 2 * (1 + 0.055 * 49) / 51
    inside = (fitted.data["fvc"] > summary.sel(statistic="q0.055")) & (
        fitted.data["fvc"] < summary.sel(statistic="q0.945")
    )
    assert abs(float(inside.mean()) - expected_coverage) < 5 * np.sqrt(expected_coverage / 2_000)
    new = {"patient": np.array([0, 4]), "week": np.zeros(2)}
    drawn = fitted.predict(new, quantiles=None, draws=20)["posterior_predictive"]["obs"]
    assert drawn.dims == ("chain", "draw", "row")
    assert drawn.shape == (1, 20, 2)
    elpd = fitted.loo(draws=200)
    assert elpd.n_data_points == 2_000
    assert elpd.elpd_i.shape == (2_000,)
    assert abs(elpd.p - 11) < 5 * np.hypot(0.3, 0.4) + 0.9


@pytest.mark.full
def test_a_saved_fit_predicts_as_before(fitted, tmp_path):
    _, data, static = cases(size=2_000)["lung"]
    path = fitted.save(tmp_path / "fit.nc")
    again = cm.load(path, model=cm.from_numpyro(lung, static=static), data=data)
    np.testing.assert_array_equal(
        again.predict(draws=50)["posterior_predictive"]["obs"], fitted.predict(draws=50)["posterior_predictive"]["obs"]
    )
    with pytest.raises(cm.InputError, match=r"cm\.load\(path, model="):
        cm.load(path).predict()


@pytest.mark.full
def test_the_coreset_refitted_in_numpyro_is_our_posterior(fitted):
    """The recipe of the guide: weights as scales of the rows. Its log density is that of the chains, up to nothing.

    With few rows for its parameters this fit has a Gaussian term, which the recipe adds.
    """
    term = fitted.coreset.term
    assert term is not None
    frame = fitted.coreset.to_frame()
    frame = frame[frame["weight"] > 0]

    def weighted(patient, week, fvc, weight, num_patients):
        mean_a = numpyro.sample("mean_a", dist.Normal(0.0, 2.0))
        scale_a = numpyro.sample("scale_a", dist.HalfNormal(2.0))
        mean_b = numpyro.sample("mean_b", dist.Normal(0.0, 1.0))
        scale_b = numpyro.sample("scale_b", dist.HalfNormal(1.0))
        with numpyro.plate("patients", num_patients):
            a = numpyro.sample("a", dist.Normal(mean_a, scale_a))
            b = numpyro.sample("b", dist.Normal(mean_b, scale_b))
        sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
        with numpyro.plate("data", patient.shape[0]), handlers.scale(scale=weight):
            numpyro.sample("obs", dist.Normal(a[patient] + b[patient] * week, sigma), obs=fvc)

    columns = {name: jnp.asarray(frame[name].to_numpy()) for name in ("patient", "week", "fvc", "weight")}
    positions = fitted.positions()
    for draw in (0, 17, 400):
        position = jax.tree.map(lambda leaf, draw=draw: jnp.asarray(leaf[1, draw]), positions)
        ours = fitted.tree["sample_stats"]["lp"].to_numpy()[1, draw]
        theirs = -potential_energy(weighted, (), {**columns, "num_patients": 5}, position) + term.log_density(position)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


def test_initvals_are_values_of_parameters():
    bound = bound_case("lung")
    start = bound.unconstrain({"sigma": 0.5, "a": 2.0}, bound.initial_position(jax.random.key(0)))
    shown = bound.constrain(start)
    np.testing.assert_allclose(shown["sigma"], 0.5)
    np.testing.assert_allclose(shown["a"], np.full(5, 2.0))
    with pytest.raises(cm.InputError, match=r"initvals: got \['tau'\]; expected values of some of the parameters"):
        bound.unconstrain({"tau": 1.0}, start)


def test_fingerprint_is_that_of_the_code():
    """A checkpoint of a NumPyro model can be resumed in another process, and not by another model."""
    from coreset_mcmc.driver.fingerprint import fingerprint

    def other(marriage, age, divorce=None):
        b = numpyro.sample("a", dist.Normal(0.0, 0.3))
        numpyro.sample("obs", dist.Normal(b * age, 1.0), obs=divorce)

    data = cases()["divorce"].data
    one, again, changed = bound_case("divorce"), cm.from_numpyro(divorce).bind(data), cm.from_numpyro(other).bind(data)
    assert fingerprint(one) == fingerprint(again) != fingerprint(changed)
