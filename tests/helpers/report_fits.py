"""Fits made of random numbers, in the layout of real ones, so that tests of the report need no sampler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import arviz_base
import numpy as np
import pandas as pd
import xarray

from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.methods.law import Law
from coreset_mcmc.report import Content
from coreset_mcmc.results.coreset import Coreset
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.results.tree import coreset_group

NUM_ROWS = 1_000
HOSTILE = (
    "a_$x$_b",
    "$\\frac{",
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(2)'>",
    "</svg></style><b>&amp;",
    "{{ 7 * 7 }}{% raw %}",
    "-->]]>",
    "line\nbreak\ttab\x00\x1b",
    "数据 ±😀 \u202egnorw",
    "W" * 200,
)


def normal_draws(*shape: int, chains: int = 4, draws: int = 200) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(chains, draws, *shape))


def made_fit(
    posterior: dict[str, np.ndarray] | None = None,
    *,
    has_coreset: bool = True,
    training: dict[str, Any] | None = None,
    reasons: tuple[str, str] = ("converged", "total reached"),
    **options: Any,
) -> Fit:
    """A fit with the given draws (chains, draws, ...); ``options`` are dims and coords."""
    posterior = posterior if posterior is not None else {"beta": normal_draws(3), "sigma": normal_draws() ** 2}
    shape = next(iter(posterior.values())).shape[:2]
    tree = arviz_base.from_dict(
        {"posterior": posterior, "sample_stats": {"diverging": np.zeros(shape, bool)}}, **options
    )
    history = {"kl_estimate": [np.nan, 20.0, 20.0, 0.4, 0.05]} if training is None else training
    num_steps = max((len(values) for values in history.values()), default=0)
    history = {"seconds": 0.3 * np.arange(1, num_steps + 1), **history}
    tree["training"] = xarray.DataTree(
        xarray.Dataset({name: ("iteration", np.array(values)) for name, values in history.items()})
    )
    if has_coreset:
        rng = np.random.default_rng(1)
        weights = np.where(np.arange(40) < 30, rng.exponential(30.0, size=40), 0.0)
        indices = rng.choice(NUM_ROWS, 40, replace=False)
        columns = {"x": rng.normal(size=(40, 2)), "y": rng.normal(size=40)}
        tree["coreset"] = coreset_group(Coreset(indices, weights, NUM_ROWS, columns))
    costs = {
        "pilot": Cost.of(),
        "training": Cost(1.5, 0.5, 5, 50_000, reasons[0]),
        "sampling": Cost(2.0, 0.25, 300, 12_000, reasons[1]),
        "check": Cost(0.1, 0.0, 200, 208_000, "total reached"),
    }
    estimate = 0.05 if has_coreset else float("nan")
    settings = {"random_seed": 3, "model": "linear", "method": "least-squares" if has_coreset else "nuts"}
    law = Law.CORESET if has_coreset else Law.FULL
    names = {name: name for name in posterior}
    return Fit(tree, law=law, kl_estimate=estimate, **costs, settings=settings, position_names=names)


def made_trust(verdict: str = "good", **changes: Any) -> SimpleNamespace:
    finding = SimpleNamespace(
        name="distance", value=0.05, level=verdict, text="The distance is small.", remedy="Relax."
    )
    values = {
        "verdict": verdict,
        "reason": "All checks agree.",
        "remedy": "Nothing is left to do.",
        "findings": (finding,),
        "blind_spots": "Modes that no chain visited.",
        "kl_estimate": 0.05,
        "pareto_k": 0.3,
        "effective_draws": 712.4,
        "num_draws": 800,
        "rhat_across_coresets": float("nan"),
        "largest_shift": 0.1,
        "effective_rows": 19.2,
        "size_sensitivity": float("nan"),
        "seconds": 4.2,
        "num_evaluations": 123_456,
    }
    return SimpleNamespace(**{**values, **changes})


def made_content(**changes: Any) -> Content:
    """One parameter, so that there are few figures to draw, and a good verdict."""
    options = {"title": "y ~ x", "fit": made_fit({"theta": normal_draws()}), "trust": made_trust()} | changes
    return Content(**options)


def hostile_content() -> Content:
    """Names and values that would break a page that is careless anywhere."""
    names = list(HOSTILE)
    fit = made_fit(
        {"<i>effect": normal_draws(len(names))},
        dims={"<i>effect": ["column"]},
        coords={"column": names},
    )
    columns = {name: np.array([name] * fit.coreset.size, dtype=object) for name in names}
    rows = fit.coreset.to_frame().join(pd.DataFrame(columns, dtype=object))
    text = " ".join(names)
    trust = made_trust(
        text,
        reason=text,
        remedy=text,
        blind_spots=text,
        findings=(SimpleNamespace(name=text, value=text, level=text, text=text, remedy=text),),
    )
    settings = {name: {"inner": name, name: [name]} for name in names}
    return Content(text, fit, trust, subtitle=text, rows=rows, settings=settings, notes=names, is_partial=True)
