"""The recipe that takes a coreset to Bambi has our log density, whatever the family; Bambi's own weights have not."""

from __future__ import annotations

import numpy as np
import pytest

import coreset_mcmc as cm
from tests.helpers.pymc_totals import positions_of

bmb = pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
import pymc as pm  # noqa: E402

from coreset_mcmc_benchmarks.interop.catalogue.bambi_models import FAMILIES, of_family, table  # noqa: E402

SIZE = 60
FAST = ("gamma", "t")


def weighted_by_potential(small: bmb.Model, weights: np.ndarray) -> pm.Model:
    """The recipe of docs/bring_your_model.md."""
    small.build()
    with small.backend.model as weighted:
        (response,) = weighted.observed_RVs
        log_likelihood = pm.logp(response, weighted.rvs_to_values[response])
        pm.Potential("weights", (weights - 1) * log_likelihood)
    return weighted


def test_every_family_is_tried():
    from bambi.defaults.families import BUILTIN_FAMILIES

    assert set(FAMILIES) == set(BUILTIN_FAMILIES)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.full) for name in FAMILIES]
)
def test_the_recipe_has_the_log_density_of_the_coreset(name):
    weights = np.random.default_rng(1).uniform(0.5, 3, size=SIZE)
    ours = cm.from_bambi(of_family(name, SIZE, center_predictors=False))
    recipe = weighted_by_potential(of_family(name, SIZE, center_predictors=False), weights)
    theirs = recipe.compile_logp(mode="FAST_COMPILE")
    for position in positions_of(ours, 2):
        log_density = ours.log_prior(position) + weights @ ours.log_likelihood(position, ours.data)
        np.testing.assert_allclose(
            theirs({key: np.asarray(value) for key, value in position.items()}), log_density, rtol=1e-12
        )


@pytest.mark.parametrize("name", ["gamma", "t"])
def test_weights_that_bambi_gets_wrong_are_refused(name):
    formula = f"weighted({FAMILIES[name].split(' ~ ')[0]}, z) ~ x"
    with pytest.raises(
        cm.InputError, match=r"(?s)weighted\(\) of the family.*parameters in the wrong order.*Potential"
    ):
        cm.from_bambi(bmb.Model(formula, table(SIZE), family=name))


@pytest.mark.full
def test_the_weighted_gamma_of_bambi_is_another_density():
    """Why it is refused: with all weights one it is not the gamma family."""
    data = table(SIZE).assign(one=1.0)
    plain, weighted = (
        bmb.Model(formula, data, family="gamma", link="log", center_predictors=False, auto_scale=False)
        for formula in ("positive ~ x", "weighted(positive, one) ~ x")
    )
    plain.build(), weighted.build()
    start = plain.backend.model.initial_point(0)
    point = {name: value + 0.7 for name, value in start.items()}  # at a mean and a shape of one they agree by chance
    totals = [model.backend.model.compile_logp(mode="FAST_COMPILE")(point) for model in (plain, weighted)]
    assert abs(totals[0] - totals[1]) > 10


def test_default_priors_that_are_infinite_are_refused():
    with pytest.raises(cm.InputError, match=r"(?s)the default priors are not.*give priors"):
        cm.from_bambi(bmb.Model("truncated(positive, lb=0) ~ x", table(SIZE)))
