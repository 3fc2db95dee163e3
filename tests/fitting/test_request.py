"""What ``fit`` refuses before it reads anything, and how it plans what it was asked for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc import extend
from tests.helpers.problems import logistic_data

MODEL = cm.models.logistic_regression(2)
QUICK = {"draws": 10, "tune": 0, "chains": 1, "progressbar": False, "random_seed": 0}


def test_a_method_is_no_selection_and_the_message_says_which_name_is_meant():
    """``cm.Uniform`` is the method; the rows are picked by ``cm.selection.Uniform``."""
    with pytest.raises(
        cm.InputError, match=r"selection: got an object of class Uniform.*pass cm.selection.Uniform\(\)"
    ):
        cm.fit(MODEL, logistic_data(), selection=cm.Uniform(), **QUICK)


@pytest.mark.parametrize("selection", [cm.selection.Uniform, 3, "uniform"])
def test_what_is_no_selection_is_refused(selection):
    with pytest.raises(cm.InputError, match=r"selection: got .*expected a rule that picks rows"):
        cm.fit(MODEL, logistic_data(), selection=selection, **QUICK)


@pytest.mark.parametrize("method", [cm.LeastSquares, "nuts", cm.kernels.HitAndRunSlice()])
def test_what_is_no_method_is_refused(method):
    with pytest.raises(cm.InputError, match=r"method: got .*expected a method such as cm.LeastSquares\(\)"):
        cm.fit(MODEL, logistic_data(), method=method, **QUICK)


def test_a_growing_coreset_needs_a_method_that_chooses_rows():
    with pytest.raises(cm.InputError, match=r'coreset_size="auto".*Leave coreset_size out'):
        cm.fit(MODEL, logistic_data(), coreset_size="auto", method=cm.NUTS(), **QUICK)
    with pytest.raises(cm.InputError, match=r'coreset_size="auto"'):
        cm.fit(MODEL, logistic_data(), coreset_size="auto", selection=cm.selection.Given(np.arange(9)), **QUICK)


@pytest.mark.full
def test_a_growing_coreset_reads_model_and_data_once():
    """Sizes differ, the rest is read and bound a single time."""
    num_bound = []

    def bind(batch):
        num_bound.append(batch)
        return MODEL

    model = cm.Model(MODEL.log_prior, MODEL.log_likelihood, MODEL.initial_position, bind=bind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(model, logistic_data(), coreset_size="auto", kl_target=1e-12, **{**QUICK, "draws": 20})
    assert len(num_bound) == 1
    assert fitted.settings["coreset_size"].count("rows gave") == 2, "100 of 400 rows, then half of them"


def test_a_contract_that_is_not_kept_fails_when_the_object_is_made():
    class Unfinished(extend.WithoutTraining):
        name = "unfinished"

    class Motionless(extend.Kernel):
        pass

    with pytest.raises(TypeError, match="finish"):
        Unfinished()
    with pytest.raises(TypeError, match="step"):
        Motionless()


def test_every_hook_has_a_default_that_means_nothing_special():
    class Plain(extend.WithoutTraining):
        name = "plain"

        def finish(self, state, problem, *, kernel, num_chains):
            raise AssertionError

    method = Plain()
    assert method.adapted(None, keeps_rows=True) is method
    assert method.resized(3) is method
    assert method.expected_sampler(None, 4) is None
    assert (method.lacks_kernel, method.needs_pilot, method.num_chains, method.max_steps) == (False, False, 1, 0)
    assert list(method.ahead(None)) == []
    assert method.phase_of(None) is None
