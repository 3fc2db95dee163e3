"""The page: its sections, what it says of each kind of fit, and that names and values stay text."""

from __future__ import annotations

import re
import sys

import arviz_base
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.report import Content, render, require_installed, write_report
from coreset_mcmc.report.parameters import Parameters
from coreset_mcmc.report.wording import beside, clean, flattened, label, number, shown
from coreset_mcmc.results.effects import Effect, Estimate
from tests.helpers.pages import Page, drawings
from tests.helpers.report_fits import HOSTILE, hostile_content, made_content, made_fit, made_trust, normal_draws

SECTIONS = ["parameters", "marginals", "traces", "convergence", "rows", "predictive", "cost", "settings"]
LIMIT = 2_000_000
"""Bytes of a report of twenty parameters and 4 x 1000 draws."""


@pytest.fixture(scope="module")
def hostile() -> str:
    return render(hostile_content())


@pytest.fixture(scope="module")
def plain() -> str:
    return render(made_content(fit=made_fit()))


@pytest.mark.full
def test_every_section_has_a_heading_and_a_place_in_the_contents(plain):
    page = Page(plain)
    assert len(page.all("h1")) == 1
    ids = page.ids()
    assert [name for name in ids if name in SECTIONS] == SECTIONS
    links = [element.attributes["href"] for element in page.all("a")]
    assert set(links) == {f"#{name}" for name in ["checks", *SECTIONS]}
    assert len(ids) == len(set(ids)), "ids of several figures clash"
    for section in page.all("section"):
        assert section.attributes["aria-labelledby"] in ids


def test_numbers_of_the_summary_and_the_cost_are_there(plain):
    text = Page(plain).text
    summary = made_fit().summary(round_to="none")
    for name, row in summary.iterrows():
        assert str(name) in text
        assert beside(row["mean"], row["sd"]) in text
        assert f"{row['r_hat']:.3f}" in text
    assert "as many as 270 passes over all rows" in text
    assert "in all 3.6 0.8 505 270,000 270" in text
    assert "208,000" in text
    assert "random_seed" in text


def test_tables_and_figures_can_be_read_aloud(plain):
    page = Page(plain)
    assert all(element.attributes["scope"] in ("col", "row") for element in page.all("th"))
    figures = page.all("svg")
    assert len(figures) == 3 + 2 * 4
    assert all(element.attributes["role"] == "img" and element.attributes["aria-label"] for element in figures)
    assert len(page.all("caption")) == len(page.all("table"))


def test_figures_are_valid_and_refer_only_to_themselves(plain):
    seen: set[str] = set()
    for drawing in drawings(plain):
        ids = {element.get("id") for element in drawing.iter()} - {None}
        text = " ".join(value for element in drawing.iter() for value in element.attrib.values())
        used = set(re.findall(r"url\(#([^)]+)\)", text)) | {
            element.get("href", "").removeprefix("#") for element in drawing.iter("use")
        }
        assert used == ids
        assert not seen & ids
        seen |= ids
        assert not {"metadata", "style", "script"} & {element.tag for element in drawing.iter()}


@pytest.mark.parametrize("which", ["plain", "hostile"])
def test_nothing_is_loaded_from_anywhere(which, request):
    page = Page(request.getfixturevalue(which))
    assert not {"script", "iframe", "img", "object", "embed", "base", "form", "image"} & {e.tag for e in page.elements}
    for element in page.elements:
        for name, value in element.attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href", "srcset", "action", "data"):
                assert (value or "").startswith("#") or value == "data:,"
            if name == "style":
                assert not re.search(r"url\((?!#)", value or "")
    policy = [e.attributes["content"] for e in page.all("meta") if "http-equiv" in e.attributes]
    assert len(policy) == 1
    assert "default-src 'none'" in str(policy[0])


def test_hostile_names_and_values_stay_text(hostile):
    page = Page(hostile)
    assert not {"script", "img", "b", "i"} & {element.tag for element in page.elements}
    text = page.text
    for name in HOSTILE:
        assert clean(name) in text
    assert "49" not in re.findall(r"\d+", text.split("Parameters")[0]), "a template inside a name was run"


def test_figures_show_names_literally(hostile):
    words = [" ".join(element.itertext()) for drawing in drawings(hostile) for element in drawing.iter("text")]
    for name in HOSTILE:
        assert label(f"<i>effect[{name}]", 34) in words
    assert not any("mathdefault" in word for word in words)


@pytest.mark.full
def test_the_same_content_gives_the_same_page_whatever_matplotlib_is_set_to(plain):
    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "text.parse_math": True}):
        assert render(made_content(fit=made_fit())) == plain
    assert dict(mpl.rcParams) == before


@pytest.mark.full
def test_verdicts_have_words_a_look_and_what_to_do():
    for verdict, look, words in [
        ("good", "good", "Good: these results can be used"),
        ("use with care", "care", "Use with care"),
        ("do not use", "bad", "Do not use these results"),
    ]:
        page = Page(render(made_content(trust=made_trust(verdict))))
        box = next(element for element in page.all("section") if element.attributes["id"] == "verdict")
        assert box.attributes["class"] == f"verdict {look}"
        for text in (words, "All checks agree.", "Nothing is left to do.", "Modes that no chain visited.", "712"):
            assert text in page.text
        assert page.text.count("not computed") == 2


def test_without_checks_the_report_says_so():
    text = Page(render(made_content(trust=None))).text
    assert "Not checked" in text
    assert "0.05 nats: as if one parameter were off by 0.32 of its standard deviations" in text
    assert "What was checked" not in text


@pytest.mark.full
def test_an_interrupted_run_says_so(plain):
    assert "Interrupted" not in Page(plain).text
    assert "Interrupted" in Page(render(made_content(is_partial=True))).text
    stopped = made_fit(reasons=("converged", "interrupted"))
    assert "sampling: interrupted" in Page(render(made_content(fit=stopped))).text


@pytest.mark.parametrize("num_draws", [1, 3])
def test_a_run_of_very_few_draws_has_a_report(num_draws):
    fit = made_fit({"theta": normal_draws(chains=1, draws=num_draws)}, training={})
    text = Page(render(made_content(fit=fit, is_partial=True))).text
    assert f"Only {num_draws} draws per chain" in text
    assert "nothing to draw" in text


def test_a_method_without_a_coreset():
    fit = made_fit(has_coreset=False, training={"newton_decrement": [3.0, 1.0, 0.1]})
    text = Page(render(made_content(fit=fit, trust=None))).text
    assert "no row has a weight" in text
    assert "nuts worked on the data directly" in text
    assert "KL" not in text
    assert "most likely parameters" in text


@pytest.mark.full
def test_discrete_and_constant_parameters():
    gamma = np.random.default_rng(0).integers(0, 2, size=(2, 50, 3))
    gamma[..., 2] = 1
    fit = made_fit({"gamma": gamma, "huge": 1e7 + normal_draws(chains=2, draws=50), "lost": np.full((2, 50), np.nan)})
    page = render(made_content(fit=fit))
    assert len(drawings(page)) == 3 + 2 * 5
    assert "axes of their own" in Page(page).text


@pytest.mark.full
def test_warnings_of_the_fit_are_notes_once():
    drifting = normal_draws() + np.arange(4)[:, None]
    fit = made_fit({"theta": drifting})
    text = Page(render(made_content(fit=fit))).text
    warning = re.search(r"The largest R-hat is [^(]*", text)
    assert warning is not None
    full = next(note for note in _notes_of(fit) if note.startswith("The largest R-hat"))
    repeated = Page(render(made_content(fit=fit, notes=[full, "Something else."]))).text
    assert repeated.count(warning[0]) == 1
    assert "Something else." in repeated


def _notes_of(fit):
    from coreset_mcmc.diagnostics.mixing import sampling_warnings

    return sampling_warnings(fit.tree)


@pytest.mark.full
def test_rows_are_those_of_largest_weight_with_the_users_columns():
    fit = made_fit()
    order = np.argsort(-fit.coreset.weights)
    frame = fit.coreset.to_frame()[["row", "weight"]].assign(
        name=[f"customer {row}" for row in fit.coreset.indices],
        missing=pd.array([pd.NA] * 40, dtype="Int64"),
        day=pd.NaT,
        **{f"column {j}": j for j in range(20)},
    )
    text = Page(render(made_content(fit=fit, rows=frame))).text
    customers = [int(row) for row in re.findall(r"customer (\d+)", text)]
    assert customers == fit.coreset.indices[order][:20].tolist()
    assert "11 more columns are not shown" in text
    with pytest.raises(InputError, match="weight"):
        render(made_content(fit=fit, rows=frame.drop(columns="weight")))


@pytest.mark.full
def test_many_parameters_show_the_first_and_the_worst():
    draws = normal_draws(310, draws=50)
    draws[..., 305] += 2.0 * np.arange(4)[:, None]
    parameters = Parameters.of(made_fit({"beta": draws}))
    assert 305 in parameters.shown(24)
    assert 0 in parameters.shown(24)
    assert len(parameters.shown(24)) == 24
    text = Page(render(made_content(fit=parameters.fit))).text
    assert "24 of 310 parameters" in text
    assert "60 of 310 parameters" in text
    assert text.count("beta[305]") == 1 + 3
    assert all(f"beta[{place}]" in text for place in range(310))


def test_draws_of_a_place_are_those_of_its_row_in_the_summary():
    fit = made_fit(
        {"b": normal_draws(2, 3), "a": normal_draws() ** 2}, dims={"b": ["u", "v"]}, coords={"u": ["p", "q"]}
    )
    parameters = Parameters.of(fit)
    table = arviz_base.dataset_to_dataframe(fit.posterior, sample_dims=["chain", "draw"])
    assert list(table.columns) == list(parameters.summary.index)
    for place in range(parameters.count):
        assert np.array_equal(parameters.draws(place).ravel(), table.iloc[:, place])


@pytest.mark.full
def test_a_report_of_usual_size_is_small(tmp_path):
    fit = made_fit({"beta": normal_draws(20, draws=1000)})
    path = write_report(made_content(fit=fit), tmp_path / "new" / "report.html")
    assert path.stat().st_size < LIMIT
    assert "One draw in 4 is shown" in Page(path.read_text(encoding="utf-8")).text


@pytest.mark.full
def test_contents_default_to_nothing():
    content = Content("title", made_fit(), None)
    assert content.settings == {}
    assert "Not made" in Page(render(content)).text


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_what_is_missing_is_told_before_any_work(package, monkeypatch):
    require_installed()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"{package}.*coreset-mcmc\[report\]"):
        require_installed()


def test_words():
    assert [number(value) for value in (0, 1234567, 0.05, 1234.5, 1e-7, -2.5e12, float("inf"))] == [
        "0",
        "1,234,567",
        "0.05",
        "1,234",
        "1.00e-07",
        "-2.50e+12",
        "∞",
    ]
    assert beside(-0.001, 0.5) == "0.00"
    assert clean("a\x00b\ud800\u202e\n c") == "a\ufffdb\ufffd\ufffd c"
    assert label("beginning and end", 9) == "begi… end"
    assert shown([1, 2.5, True, None]) == "1, 2.5, yes, \u2013"
    assert shown(np.float32(0.5)) == "0.5"
    assert dict(flattened({"a": 1, "b": {"c": {"d": "x"}, "e": []}})) == {"a": "1", "b.c.d": "x", "b.e": "none"}


@pytest.mark.full
def test_parameters_come_first_and_checks_after_effects():
    ids = Page(render(made_content(fit=made_fit(), effects=[made_effect("number"), made_effect("levels")]))).ids()
    shown = [name for name in ids if name in ("verdict", "parameters", "effects", "checks", "traces")]
    assert shown == ["verdict", "parameters", "effects", "checks", "traces"]


@pytest.mark.full
def test_effects_have_a_picture_and_a_table():
    page = render(made_content(fit=made_fit(), effects=[made_effect("number"), made_effect("levels")]))
    text = Page(page).text
    assert "Change of y by carat" in text
    assert "carat +1" in text
    assert "0.500" in text
    assert page.count('aria-label="Average expected y by') == 2


@pytest.mark.full
def test_many_parameters_are_folded_by_term():
    fit = made_fit({"a": normal_draws(30, draws=20), "b": normal_draws(30, draws=20), "sigma": normal_draws(draws=20)})
    page = Page(render(made_content(fit=fit)))
    assert len(page.all("details")) == 2
    assert "30 parameters, means from" in page.text
    assert "a[29]" in page.text
    assert not Page(render(made_content(fit=made_fit()))).all("details")


def made_effect(kind: str) -> Effect:
    values = (0.0, 1.0, 2.0) if kind == "number" else ()
    averages = tuple(
        Estimate(name, mean, 0.1, mean - 0.2, mean + 0.2) for name, mean in zip("abc", (1, 2, 3), strict=True)
    )
    change = Estimate("carat +1" if kind == "number" else "b - a", 0.5, 0.012, 0.48, 0.52)
    return Effect("carat" if kind == "number" else "cut", "y", kind, (change,), averages, values, 0.89, 1_000, 50)
