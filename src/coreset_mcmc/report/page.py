"""From the content to the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.words import WORDS
from coreset_mcmc.diagnostics.mixing import coreset_warnings, sampling_warnings
from coreset_mcmc.report import figures, tables
from coreset_mcmc.report.content import Content
from coreset_mcmc.report.effects import shown_effects
from coreset_mcmc.report.extra import extra
from coreset_mcmc.report.parameter_tables import parameter_tables
from coreset_mcmc.report.parameters import Parameters
from coreset_mcmc.report.svg import settings_for_svg
from coreset_mcmc.report.verdict import in_plain_words, verdict_of
from coreset_mcmc.report.wording import clean, number
from coreset_mcmc.results.coreset import ROW, WEIGHT
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.results.left_out import kl_where_draws_are

TEMPLATE = "report.html"
LONGEST_NOTE = 2_000


def require_installed() -> None:
    """Raise an error that says how to install what a report needs; call it before the work that a report is about."""
    extra("matplotlib")
    _environment()


def write_report(content: Content, path: Path) -> Path:
    """Write the page to one file."""
    path = Path(path)
    page = render(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def render(content: Content) -> str:
    """The page as text; the same content gives the same text."""
    if content.rows is not None:
        missing = [name for name in (ROW, WEIGHT) if name not in content.rows.columns]
        require(
            not missing,
            "rows of the report",
            got=f"no column {missing}",
            expected="the coreset with its row numbers and weights",
            fix="Make them with fit.coreset.to_frame(data).",
        )
    template = _environment().get_template(TEMPLATE)
    with settings_for_svg():
        result: str = template.render(_context(content))
        return result


def _context(content: Content) -> dict[str, Any]:
    fit = content.fit
    parameters = Parameters.of(fit)
    panels = parameters.shown(figures.MOST_PANELS)
    traces, stride = figures.traces(parameters, panels)
    groups = parameter_tables(parameters)
    rows, num_columns_left = tables.top_rows(content) if fit.has_coreset else (None, 0)
    return {
        "title": clean(content.title),
        "words": {term: f"{term}: {meaning}" for term, meaning in WORDS.items()},
        "subtitle": clean(content.subtitle),
        "is_partial": content.is_partial or fit.is_interrupted,
        "verdict": verdict_of(content.trust, fit),
        "plain_words": in_plain_words(fit),
        "notes": _notes(content),
        "parameters": parameters,
        "groups": groups,
        "num_listed": sum(len(group.table.rows) for group in groups),
        "effects": shown_effects(content.effects),
        "forest": figures.forest(parameters),
        "num_forest": min(parameters.count, figures.MOST_INTERVALS),
        "marginals": figures.marginals(parameters, panels),
        "traces": traces,
        "stride": stride,
        "fit": fit,
        "training": figures.training(fit),
        "weights": figures.weights(fit) if fit.has_coreset else None,
        "coreset_words": _coreset_words(fit) if fit.has_coreset else "",
        "rows": rows,
        "num_columns_left": num_columns_left,
        "check": content.predictive,
        "predictive": figures.predictive(content.predictive) if content.predictive is not None else None,
        "cost": tables.cost(fit),
        "settings": tables.settings(content),
        "versions": tables.versions(),
    }


def _notes(content: Content) -> list[str]:
    """The caller's, and the fit's own warnings that are not among them."""
    notes = [clean(note, LONGEST_NOTE) for note in content.notes]
    fit, tree = content.fit, content.fit.tree
    beyond = str(fit.settings.get("beyond_the_support", ""))
    found = coreset_warnings(kl_where_draws_are(fit), beyond) if fit.samples_coreset else []
    if "sample_stats" in tree and "diverging" in tree["sample_stats"]:
        found = [*sampling_warnings(tree), *found]
    return notes + [note for note in (clean(text, LONGEST_NOTE) for text in found) if note not in notes]


TERM_WORDS = (
    " A Gaussian term carries the gradient and the Hessian of all rows; the weighted rows explain what these leave, "
    "and are not the posterior without it."
)


def _coreset_words(fit: Fit) -> str:
    coreset = fit.coreset
    num_used = int((coreset.weights > 0).sum())
    return (
        f"{number(num_used)} of the {number(coreset.size)} chosen rows have a weight above zero. The weights add up to "
        f"{number(float(coreset.weights.sum()))} (the data have {number(coreset.num_rows)} rows), and are as "
        f"concentrated as {number(coreset.effective_size)} rows of equal weight."
        + (TERM_WORDS if coreset.term is not None else "")
    )


def _environment() -> Any:
    """Templates in which everything is escaped unless it is known to be markup of ours."""
    jinja2 = extra("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("coreset_mcmc.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["clean"] = clean
    return environment
