"""Kernels refuse what they cannot sample, in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import blackjax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.kernels import GaussianAutoregression, HitAndRunSlice, RandomWalk, UnivariateSlice, from_blackjax
from tests.helpers.catalogue import CATALOGUE, Entry, entry
from tests.helpers.exact_targets import GAUSSIAN, NORMAL_GAMMA, PARETO

MANY_MODELS = [one for one in CATALOGUE if one.only_model is None]
TAKES_WHOLE_NUMBERS = "mixed_slice"
WITH_GRADIENTS = ["nuts", "hmc", "mala", "barker", "hmc_and_lines", "whitened_hmc", "whitened_nuts"]


@pytest.mark.parametrize("tested", [one for one in MANY_MODELS if one.name != TAKES_WHOLE_NUMBERS], ids=str)
def test_discrete_positions_are_refused_by_name(tested: Entry) -> None:
    position = {"mean": jnp.zeros(2), "group": jnp.array(3)}
    with pytest.raises(InputError, match=r"\['group'\] of type int64; expected continuous"):
        tested.make(3, 1.0).check(position, NORMAL_GAMMA.target())


def test_one_kernel_takes_whole_numbers() -> None:
    position = {"mean": jnp.zeros(2), "group": jnp.array(3)}
    entry(TAKES_WHOLE_NUMBERS).make(3, 1.0).check(position, NORMAL_GAMMA.target())


@pytest.mark.parametrize("tested", MANY_MODELS, ids=str)
def test_models_without_gradients_are_refused_by_kernels_that_need_them(tested: Entry) -> None:
    kernel, position = tested.make(1, 1.0), {"edge": jnp.array(2.0)}
    if tested.name in WITH_GRADIENTS:
        assert kernel.caches_gradient
        with pytest.raises(InputError, match=r"'pareto', which declares itself not differentiable.*HitAndRunSlice"):
            kernel.check(position, PARETO.target())
    else:
        assert not kernel.caches_gradient
        kernel.check(position, PARETO.target())


def test_autoregression_refuses_other_models() -> None:
    kernel = GaussianAutoregression()
    kernel.check({"theta": jnp.zeros(2)}, GAUSSIAN.target())
    with pytest.raises(InputError, match=r"got model 'normal_gamma'; expected the gaussian_location model"):
        kernel.check({"mean": jnp.zeros(2), "log_precision": jnp.zeros(())}, NORMAL_GAMMA.target())


def test_hit_and_run_refuses_a_scale_of_the_wrong_shape() -> None:
    kernel = HitAndRunSlice(scale=np.eye(2))
    kernel.check({"theta": jnp.zeros(2)}, GAUSSIAN.target())
    with pytest.raises(InputError, match=r"scale: got shape \(2, 2\); expected shape \(3, 3\)"):
        kernel.check({"mean": jnp.zeros(2), "log_precision": jnp.zeros(())}, NORMAL_GAMMA.target())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: HitAndRunSlice(width=0.0), "HitAndRunSlice width: got 0.0; expected a positive number"),
        (lambda: HitAndRunSlice(width=-1), "HitAndRunSlice width: got -1; expected a positive number"),
        (lambda: HitAndRunSlice(width=float("nan")), "HitAndRunSlice width: got nan; expected a positive number"),
        (lambda: HitAndRunSlice(num_directions=0), "num_directions: got 0; expected a whole number of at least 1"),
        (lambda: HitAndRunSlice(num_directions=1.5), "num_directions: got 1.5; expected a whole number"),
        (lambda: UnivariateSlice(width=-3.0), "UnivariateSlice width: got -3.0; expected a positive number"),
        (lambda: RandomWalk(scale=0.0), "RandomWalk scale: got 0.0; expected a positive number"),
        (lambda: GaussianAutoregression(beta=1.0), r"beta: got 1.0; expected a number in \[0, 1\)"),
        (lambda: GaussianAutoregression(beta=-0.1), r"beta: got -0.1; expected a number in \[0, 1\)"),
    ],
)
def test_numbers_out_of_range(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()


@pytest.mark.parametrize(
    ("algorithm", "parameters", "message"),
    [
        (blackjax.nuts, {"step_size": 0.1}, r"missing \['inverse_mass_matrix'\].*Pass them by keyword"),
        (blackjax.hmc, {}, r"missing \['inverse_mass_matrix', 'num_integration_steps', 'step_size'\]"),
        (blackjax.mala, {"step_size": 0.1, "stepsize": 0.2}, r"unknown parameters \['stepsize'\], missing \[\]"),
        (blackjax.slice_sampling, {"widht": 1.0}, r"unknown parameters \['widht'\].*'width'"),
        (blackjax.elliptical_slice, {"mean": np.zeros(2), "cov": np.eye(2)}, "count the prior twice"),
        (blackjax.nuts(lambda x: -(x**2), 0.1, np.ones(1)), {}, "Pass the algorithm itself, e.g. blackjax.nuts"),
        (blackjax.meanfield_vi, {}, "expected a BlackJAX algorithm with init and build_kernel"),
        ("nuts", {"step_size": 0.1}, "got 'nuts'; expected a BlackJAX algorithm"),
    ],
    ids=["missing", "all_missing", "unknown", "misspelt", "elliptical", "already_built", "not_mcmc", "a_name"],
)
def test_blackjax_algorithms_that_cannot_be_adapted(algorithm: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_blackjax(algorithm, **parameters)


def test_blackjax_defaults_may_be_left_out() -> None:
    assert entry("slice_sampling").make(2, 1.0).numbers == {"width": 2.0}
    assert from_blackjax(blackjax.slice_sampling).numbers == {}
    assert from_blackjax(blackjax.barker, step_size=0.5).numbers == {"step_size": 0.5}
