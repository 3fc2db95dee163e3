"""The verdict on a coreset posterior: right where the truth is known, not good where something is broken on purpose."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.errors import InputError, RunError
from coreset_mcmc.data import layout
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.diagnostics.mixing import SamplingQuality
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.models.gaussian_location import coreset_kl
from coreset_mcmc.posterior.distance import estimated_kl
from coreset_mcmc.verdict import BAD, CARE, GOOD, assess, refits, rules
from coreset_mcmc.verdict.verdict import conclude

DIM, SIZE = 2, 400
DATA = np.random.default_rng(3).normal(size=(SIZE, DIM))
MODEL = cm.models.gaussian_location(DIM)
ALONE = {"num_coresets": 1, "sensitivity": False}
"""No other fits."""


def fit(model=MODEL, data=DATA, **options):
    settings = {"draws": 1_000, "tune": 100, "chains": 4, "random_seed": 5, "progressbar": False, **options}
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(model, data, **settings)


def given(weights, **options):
    """All rows with these weights, nothing trained."""
    selection = cm.selection.Given(np.arange(SIZE), weights)
    return fit(selection=selection, method=cm.Uniform(), kernel=cm.kernels.HitAndRunSlice(), **options)


def by_name(judged):
    return {finding.name.partition(" ")[0]: finding for finding in judged.findings}


def kept_fits(monkeypatch):
    """A list into which other fits go as they are made."""
    made, really = [], refits.fit_in_silence
    monkeypatch.setattr(refits, "fit_in_silence", lambda request: made.append(really(request)) or made[-1])
    return made


@pytest.fixture(scope="module")
def exact():
    """All rows with weight one: the full posterior itself."""
    return given(np.ones(SIZE))


@pytest.fixture(scope="module")
def trained():
    """The default method with few rows."""
    return fit(coreset_size=40)


def shifting(size):
    """Weights that add up to N and move the mean of the first coordinate by ``size`` posterior deviations."""
    first = DATA[:, 0] - DATA[:, 0].mean()
    return 1.0 + size * np.sqrt(1.0 + SIZE) * first / np.sum(first**2)


class TestKnownTruth:
    @pytest.mark.statistical
    @pytest.mark.parametrize("shift", [0.3, 1.0])
    def test_the_estimate_is_the_closed_form(self, shift):
        """The log-ratio is Gaussian; the variance of 400 draws, nearly independent, is good to 7 %: five times that."""
        weights = shifting(shift)
        judged = given(weights).trust(**ALONE)
        with jax.enable_x64(True):
            truth = float(coreset_kl(DATA, weights, DATA))
        assert truth == pytest.approx(0.5 * shift**2, rel=1e-2)
        assert judged.kl_estimate == pytest.approx(truth, rel=0.35)
        assert judged.num_draws == 400

    @pytest.mark.statistical
    def test_too_narrow_and_too_wide(self):
        """A variance c of the right one: r = (1 - c) z^2 / 2, KL = (c - 1 - log c) / 2, half variance (1 - c)^2 / 4.

        The direct estimate has a relative error below 1 % at c = 0.6, where exp(r) has a variance.
        """
        squares = np.random.default_rng(0).normal(size=400_000) ** 2
        narrow = estimated_kl(0.5 * 0.4 * squares)
        assert narrow == pytest.approx((0.6 - 1 - math.log(0.6)) / 2, rel=0.05)
        assert narrow > 0.4**2 / 4 * 1.2
        wide = estimated_kl(-0.5 * squares)
        assert wide == pytest.approx(0.25, rel=0.05)
        assert wide > (2 - 1 - math.log(2)) / 2

    @pytest.mark.full
    def test_all_rows_with_weight_one_are_good(self, exact):
        judged = exact.trust(sensitivity=False)
        assert judged.verdict == GOOD
        assert judged.remedy == ""
        assert judged.kl_estimate == pytest.approx(0.0, abs=1e-12)
        assert judged.pareto_k == 0.0
        assert judged.effective_draws == pytest.approx(400)
        assert judged.effective_rows == pytest.approx(SIZE)
        assert judged.rhat_across_coresets < 1.02
        assert judged.largest_shift < 0.3
        assert all(finding.remedy == "" for finding in judged.findings)

    @pytest.mark.full
    def test_a_trained_coreset_is_good(self, trained):
        """Its true KL is 0.01 or less by the closed form."""
        judged = trained.trust()
        with jax.enable_x64(True):
            truth = coreset_kl(DATA[trained.coreset.indices], trained.coreset.weights, DATA)
        assert truth < 0.01
        assert judged.verdict == GOOD
        assert len(judged.findings) == 7
        assert judged.size_sensitivity < 0.1


class TestBrokenOnPurpose:
    def test_weights_times_ten_are_too_narrow(self):
        """Every interval is a third of its right length; the true KL is 1.4 nats, half the variance at most 0.5.

        Both numbers are at a border of levels, 0.7 and 1, and chains of 1 000 draws reach the tail by luck.
        """
        weights = np.full(SIZE, 10.0)
        judged = given(weights).trust(draws=4_000, **ALONE)
        assert judged.verdict != GOOD
        assert by_name(judged)["Tail"].level != GOOD
        assert judged.kl_estimate > 0.5

    def test_doubled_weights_are_not_good(self):
        judged = given(np.full(SIZE, 2.0)).trust(**ALONE)
        assert judged.verdict != GOOD
        assert judged.remedy

    @pytest.mark.full
    def test_a_stratum_without_weight(self):
        weights = np.where(DATA[:, 0] > 1.0, 0.0, 1.0)
        judged = given(weights).trust(**ALONE)
        assert judged.verdict == BAD
        assert "standard deviation" in judged.reason

    @pytest.mark.full
    def test_untrained_rows_disagree_across_coresets(self):
        judged = fit(coreset_size=40, method=cm.Uniform(), kernel=cm.kernels.HitAndRunSlice()).trust(sensitivity=False)
        assert by_name(judged)["Agreement"].level == CARE
        assert "this size works for some rows only" in by_name(judged)["Agreement"].text
        assert judged.kl_of_others > 1.0
        assert judged.verdict == BAD
        assert judged.largest_shift > 1.0

    @pytest.mark.full
    def test_coresets_that_contradict_each_other(self, trained):
        """Given weights that put the posterior elsewhere, against a coreset that is good by its own estimate."""
        judged = given(shifting(3.0)).trust(sensitivity=False)
        assert by_name(judged)["Agreement"].level == BAD
        assert "depends on which rows were drawn" in by_name(judged)["Agreement"].text
        assert judged.largest_shift == pytest.approx(3.0, abs=0.3)

    @pytest.mark.full
    def test_draws_that_are_impossible_under_other_rows(self):
        """Rows outside the coreset forbid what the coreset allows."""
        model = cm.Model(
            lambda theta: -0.5 * jnp.sum(theta**2),
            lambda theta, rows: jnp.where(rows > theta[0], -theta[0] * 0.0, -jnp.inf),
            initial_position=np.full(1, -2.0),
        )
        rows = np.linspace(-1.0, 1.0, 50)
        options = {"selection": cm.selection.Given(np.arange(40, 50)), "method": cm.Uniform()}
        made = fit(model, rows, kernel=cm.kernels.HitAndRunSlice(), **options)
        judged = made.trust(**ALONE)
        assert judged.verdict == BAD
        assert "impossible" in judged.reason

    @pytest.mark.full
    def test_a_missing_mirror_is_seen(self):
        """Two modes of equal mass, of which chains find one: nothing else is wrong, and the search finds the mirror."""
        model = cm.Model(
            lambda theta: -0.005 * jnp.sum(theta**2),
            lambda theta, rows: -0.5 * (rows - jnp.abs(theta[0])) ** 2,
            initial_position=np.full(1, 10.0),
        )
        rows = np.random.default_rng(0).normal(10.0, 1.0, size=200)
        made = fit(
            model, rows, selection=cm.selection.Given(np.arange(200)), method=cm.Uniform(),
            kernel=cm.kernels.RandomWalk(0.15), draws=4_000,
        )  # fmt: skip
        judged = made.trust(**ALONE)
        assert float(made.posterior["theta"].min()) > 0
        assert judged.verdict == CARE
        assert {name for name, finding in by_name(judged).items() if finding.level != GOOD} == {"Other"}
        assert "mode that no search has found" in judged.blind_spots


def good_findings():
    quality = SamplingQuality(4, 1_000, 2_000.0, "beta", 1.003, "beta", 0)
    return {
        "distance": rules.distance(0.01, 400),
        "tails": rules.tails(0.2, 380.0, 400),
        "agreement": rules.agreement(1.01, 0.1, "beta", 2, ""),
        "rows": rules.rows(100.0, 10, 10_000),
        "reserve": rules.reserve(0.05, 100, ""),
        "sampling": rules.sampling(quality),
    }


QUALITY = SamplingQuality(4, 1_000, 2_000.0, "beta", 1.003, "beta", 0)


@pytest.mark.parametrize(
    ("name", "finding", "level"),
    [
        ("distance", rules.distance(0.5, 400), CARE),
        ("distance", rules.distance(5.0, 400), BAD),
        ("distance", rules.distance(math.inf, 400), BAD),
        ("tails", rules.tails(0.6, 100.0, 400), CARE),
        ("tails", rules.tails(0.9, 10.0, 400), BAD),
        ("tails", rules.tails(math.nan, math.nan, 10), BAD),
        ("tails", rules.tails(0.9, 399.0, 400, matters=False), GOOD),
        ("agreement", rules.agreement(1.1, 0.6, "beta", 2, ""), CARE),
        ("agreement", rules.agreement(1.5, 2.0, "beta", 2, ""), BAD),
        ("agreement", rules.agreement(math.nan, math.nan, "", 2, "no mode"), CARE),
        ("agreement", rules.agreement(1.5, 2.0, "beta", 2, "", kl_of_others=0.5), BAD),
        ("agreement", rules.agreement(1.5, 2.0, "beta", 2, "", kl_of_others=50.0), CARE),
        ("rows", rules.rows(12.0, 10, 10_000), GOOD),
        ("rows", rules.rows(6.0, 10, 10_000), CARE),
        ("rows", rules.rows(8.0, 10, 8), GOOD),
        ("reserve", rules.reserve(20.0, 100, ""), CARE),
        ("reserve", rules.reserve(20.0, 100, "", matters=False), GOOD),
        ("reserve", rules.reserve(math.nan, 100, "no mode"), CARE),
        ("sampling", rules.sampling(QUALITY._replace(rhat=1.05)), CARE),
        ("sampling", rules.sampling(QUALITY._replace(rhat=1.5)), BAD),
        ("sampling", rules.sampling(QUALITY._replace(num_chains=1, rhat=math.nan)), CARE),
        ("sampling", rules.sampling(QUALITY._replace(ess=200.0)), CARE),
        ("sampling", rules.sampling(QUALITY._replace(ess=20.0)), BAD),
        ("sampling", rules.sampling(QUALITY._replace(num_diverging=3)), CARE),
        ("sampling", rules.sampling(QUALITY._replace(num_diverging=400)), BAD),
        ("sampling", rules.sampling(QUALITY._replace(num_draws=3)), BAD),
    ],
)
def test_each_finding_decides_by_itself(name, finding, level):
    findings = {**good_findings(), name: finding}
    judged = conclude(list(findings.values()), "all is well", seconds=0.0)
    assert finding.level == level == judged.verdict
    assert judged.reason == ("all is well" if level == GOOD else finding.text)
    assert bool(judged.remedy) == (level != GOOD)
    assert judged.remedy == finding.remedy


class TestAccount:
    @pytest.mark.full
    def test_dictionary_is_json(self, trained):
        judged = trained.trust(draws=50, **ALONE)
        plain = json.loads(json.dumps(judged.to_dict(), allow_nan=False))
        assert plain["verdict"] == judged.verdict
        assert plain["rhat_across_coresets"] is None
        assert plain["findings"][0]["value"] == judged.kl_estimate
        assert set(plain["findings"][0]) == {"name", "value", "level", "text", "remedy"}

    def test_text_fits_a_terminal(self, trained):
        lines = str(trained.trust(draws=50, **ALONE)).splitlines()
        assert lines[0].startswith("GOOD: ")
        assert max(map(len, lines)) <= 100
        assert any("k-hat" in line for line in lines)

    def test_one_pass_is_counted(self, trained):
        """Draws of the final check are known already; a fit from a file has forgotten them."""
        known = trained.checked.num_draws
        assert trained.trust(draws=known + 8, **ALONE).num_evaluations == 2 * 8 * (SIZE + 40)
        assert trained.trust(draws=50, **ALONE).num_evaluations == 0
        forgetful = replace(trained, tree=trained.tree.copy(), checked=None)
        assert forgetful.trust(draws=50, **ALONE).num_evaluations == 2 * 50 * (SIZE + 40)

    @pytest.mark.full
    def test_draws_of_the_final_check_count_as_others_do(self):
        """The same estimate from the same draws, and from more of them, known or not, the closed form to 20 %.

        The shift is along one coordinate, so half the variance of n draws has a relative error of sqrt(2 / n).
        """
        shifted = given(shifting(1.0), draws=2_000)
        known = shifted.checked.num_draws
        assert shifted.trust(draws=known, **ALONE).kl_estimate == pytest.approx(shifted.kl_estimate, rel=1e-9)
        joined = shifted.trust(draws=8 * known, **ALONE)
        alone = replace(shifted, tree=shifted.tree.copy(), checked=None).trust(draws=8 * known, **ALONE)
        assert joined.num_draws == alone.num_draws == 8 * known
        assert joined.kl_estimate == pytest.approx(0.5, rel=0.2)
        assert alone.kl_estimate == pytest.approx(0.5, rel=0.2)

    @pytest.mark.full
    def test_other_fits_are_counted_and_compile_nothing(self, trained, monkeypatch):
        made = kept_fits(monkeypatch)
        trained.trust(draws=50, sensitivity=False)
        made.clear()
        before = num_compiled_programs()
        judged = trained.trust(draws=50, num_coresets=3, sensitivity=False)
        assert num_compiled_programs() == before
        assert len(made) == 2
        assert {part.coreset.size for part in made} == {40}
        assert len({tuple(part.coreset.indices) for part in (trained, *made)}) == 3
        assert judged.num_evaluations == sum(round(part.full_passes * SIZE) for part in made)
        again = trained.trust(draws=50, num_coresets=3, sensitivity=False)
        assert again.rhat_across_coresets == judged.rhat_across_coresets

    @pytest.mark.full
    def test_half_the_rows_stand_in_for_as_many_if_they_agree(self, trained, monkeypatch):
        made = kept_fits(monkeypatch)
        judged = trained.trust()
        assert [part.coreset.size for part in made] == [20]
        assert "one of them with half the rows" in by_name(judged)["Agreement"].text
        assert judged.verdict == GOOD
        made.clear()
        three = trained.trust(num_coresets=3)
        assert [part.coreset.size for part in made] == [20, 40]
        assert three.num_evaluations > judged.num_evaluations

    @pytest.mark.full
    def test_half_the_rows_that_disagree_speak_for_themselves_alone(self, monkeypatch):
        """With equal weights half the rows are far off: agreement is that of as many rows, as it would be alone."""
        untrained = fit(coreset_size=40, method=cm.Uniform(), kernel=cm.kernels.HitAndRunSlice())
        made = kept_fits(monkeypatch)
        judged = untrained.trust()
        assert [part.coreset.size for part in made] == [20, 40]
        assert "of this size" in by_name(judged)["Agreement"].text
        assert judged.rhat_across_coresets == untrained.trust(sensitivity=False).rhat_across_coresets

    @pytest.mark.full
    def test_the_division_of_rows_changes_nothing_but_rounding(self, trained, monkeypatch):
        """Never all rows times all draws: leaves of 64 rows, of which the program holds 64 positions at once."""
        whole = replace(trained, tree=trained.tree.copy(), checked=None).trust(draws=100, **ALONE)
        monkeypatch.setattr(layout, "FEWEST_LEAF_ROWS", 64)
        monkeypatch.setattr(layout, "MOST_LEAF_ROWS", 64)
        rows = Rows.of_arrays(DATA)
        assert rows.layout.num_leaves == -(-SIZE // 64) > 2
        pieces = replace(trained, tree=trained.tree.copy(), rows=rows, checked=None).trust(draws=100, **ALONE)
        assert pieces.kl_estimate == pytest.approx(whole.kl_estimate, rel=1e-9)
        assert pieces.pareto_k == pytest.approx(whole.pareto_k, abs=1e-6)

    @pytest.mark.full
    def test_fewer_draws_with_very_many_rows(self, trained, monkeypatch):
        monkeypatch.setattr(assess, "MOST_EVALUATIONS", 2 * 60 * SIZE)
        assert trained.trust(**ALONE).num_draws == 60
        monkeypatch.setattr(assess, "MOST_EVALUATIONS", 1)
        assert trained.trust(**ALONE).num_draws == assess.FEWEST_WITH_MANY_ROWS

    def test_a_failed_fit_calls_for_care(self, trained, monkeypatch):
        def fail(request):
            raise RunError("a chain was lost")

        monkeypatch.setattr(refits, "fit_in_silence", fail)
        judged = trained.trust(draws=50)
        assert judged.verdict == CARE
        assert "a chain was lost" in by_name(judged)["Agreement"].text
        assert math.isnan(judged.size_sensitivity)


class TestOtherFits:
    @pytest.mark.full
    def test_after_loading(self, trained, tmp_path):
        path = trained.save(tmp_path / "fit.nc")
        with pytest.raises(InputError, match=r"cm\.load\(path, model=\.\.\., data=\.\.\.\)"):
            cm.load(path).trust()
        judged = cm.load(path, model=MODEL, data=DATA).trust(draws=50, sensitivity=False)
        assert judged.verdict == GOOD
        assert judged.rhat_across_coresets > 0.99

    @pytest.mark.full
    def test_few_draws_as_after_an_interruption(self, trained):
        few = fit(coreset_size=40, draws=3)
        judged = few.trust(sensitivity=False)
        assert judged.verdict == BAD
        assert math.isnan(judged.pareto_k)
        assert judged.num_draws == 12

    @pytest.mark.full
    def test_corrected_draws_are_judged_by_what_applies(self, trained):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            weighted, exact = trained.reweight(), trained.exact(draws=300, progressbar=False)
        judged = weighted.trust()
        assert judged.pareto_k == weighted.settings["pareto_k"]
        assert judged.effective_draws == weighted.settings["effective_draws"]
        assert list(by_name(judged)) == ["Tail", "Draws"]
        assert list(by_name(exact.trust())) == ["Other", "Sampling"]

    @pytest.mark.full
    def test_methods_without_a_coreset(self):
        full = fit(method=cm.NUTS(), tune=0)
        assert full.trust().verdict == GOOD
        assert list(by_name(full.trust())) == ["Other", "Sampling"]
        laplace = fit(method=cm.Laplace(), tune=0)
        assert by_name(laplace.trust())["Tail"].level == GOOD
        unknown = fit(method=cm.SGLD(), draws=200)
        assert by_name(unknown.trust())["Distance"].level == CARE
        assert "Nothing measures" in by_name(unknown.trust())["Distance"].text

    @pytest.mark.full
    def test_discrete_parameters(self):
        data = cm.models.sparse_regression_data(np.random.default_rng(0), 1_000)
        made = fit(cm.models.sparse_regression(10), data, coreset_size=80, initvals=cm.models.least_squares_start(data))
        judged = made.trust(sensitivity=False)
        assert judged.verdict in (GOOD, CARE)
        assert judged.rhat_across_coresets > 0.99
        assert judged.num_draws == 400

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"draws": 10}, r"draws: got 10; expected a whole number of at least 25"),
            ({"num_coresets": 0}, r"num_coresets: got 0"),
        ],
    )
    def test_bad_options_are_refused(self, trained, options, message):
        with pytest.raises(InputError, match=message):
            trained.trust(**options)
        with pytest.raises(InputError, match=r"Pass what cm\.fit returned"):
            cm.trust("a fit")


class TestComparison:
    @pytest.mark.statistical
    def test_known_shift(self, rng):
        """Two groups of 4 000 draws a known distance apart; five standard errors, sqrt(2 / 4 000) each."""
        one, other = rng.normal(size=(2, 4, 1_000, 3))
        other[..., 2] += 1.0
        found = refits.compare([{"beta": one}, {"beta": other}])
        assert found.place == "beta[2]"
        assert found.largest_shift == pytest.approx(1.0, abs=5 * math.sqrt(2 / 4_000))
        assert found.rhat == pytest.approx(math.sqrt(1 + 1 / 3), abs=0.05)

    def test_draws_that_never_move(self):
        still = {"a": np.zeros((2, 10))}
        assert math.isnan(refits.compare([still, still]).rhat)
        apart = refits.compare([still, {"a": np.ones((2, 10))}])
        assert apart.largest_shift == math.inf
        assert apart.rhat == math.inf

    def test_discrete_parts_count_only_alone(self, rng):
        beta = rng.normal(size=(2, 2, 500))
        gamma = np.zeros((2, 500), int)
        mixed = refits.compare([{"beta": beta[0], "gamma": gamma}, {"beta": beta[1], "gamma": gamma + 1}])
        assert mixed.place == "beta"
        assert refits.compare([{"gamma": gamma}, {"gamma": gamma + 1}]).place == "gamma"


@pytest.mark.full
def test_ctrl_c_in_another_fit_ends_the_assessment(exact, monkeypatch):
    """A half-made fit is no evidence against the one that is judged."""
    monkeypatch.setattr(refits, "fit_in_silence", lambda request: SimpleNamespace(is_interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        refits.refit(exact, {}, seed=0, number=1, progressbar=False)
