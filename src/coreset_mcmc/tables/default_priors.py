"""Priors of every parameter: the user's where they are given, weakly informative defaults elsewhere.

With s_j the standard deviation of a column and s_y that of the response,

    coefficient j   Normal(0, 2.5 s_y / s_j)      gaussian, t
                    Normal(0, 2.5 / s_j)          bernoulli, poisson, negativebinomial
    Intercept       Normal(mean(y), 2.5 s_y)      gaussian, t
                    Normal(link(mean(y)), 2.5)    the others, its location rounded to a whole number
    sigma           HalfStudentT(4, s_y)
    nu              Gamma(2, 0.1)
    alpha           HalfCauchy(1)

The intercept is that at the means of the predictors, as in Bambi and rstanarm. Without an intercept nothing is centred,
and root mean squares stand for standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.families import Family
from coreset_mcmc.tables.formula_check import close_to
from coreset_mcmc.tables.measured_design import Design
from coreset_mcmc.tables.priors import Prior, in_words, read_prior
from coreset_mcmc.tables.scale import UserScale
from coreset_mcmc.tables.standardised import COEFFICIENTS, INTERCEPT

WIDTH = 2.5
POSITIVE = {
    "sigma": Prior("HalfStudentT", (4.0, 1.0)),
    "nu": Prior("Gamma", (2.0, 0.1)),
    "alpha": Prior("HalfCauchy", (1.0,)),
}
"""Defaults in standardised units."""


@dataclass(frozen=True)
class PriorSet:
    """Priors of the standardised numbers, and those of the user's parameters in words."""

    intercept: Prior | None
    coefficients: tuple[Prior, ...]
    positive: tuple[tuple[str, Prior], ...]
    in_words: dict[str, str]


def choose_priors(given: dict[str, str], family: Family, design: Design, scale: UserScale, start: float) -> PriorSet:
    """Read the given priors and fill in the others; ``start`` is the standardised intercept of the mean response."""
    _check_names(given, family, design)
    words: dict[str, str] = {}
    intercept = None
    if design.has_intercept:
        intercept, words[INTERCEPT] = _intercept(given, family, scale, start)
    coefficients: list[Prior] = []
    for term in design.terms:
        units = scale.units[term.columns]
        key = term.name if term.name in given else COEFFICIENTS
        if key in given:
            prior = read_prior(given[key], f"prior of {key}", for_positive=False)
            coefficients.extend(prior.in_units(unit) for unit in units)
            words[term.name] = str(prior)
        else:
            coefficients.extend([Prior("Normal", (0.0, WIDTH))] * len(units))
            words[term.name] = in_words([Prior("Normal", (0.0, WIDTH * unit)) for unit in units])
    positive = []
    for name in family.positive:
        unit = scale.response_scale if name == "sigma" else 1.0
        if name in given:
            prior = read_prior(given[name], f"prior of {name}", for_positive=True)
            _check_tail(name, prior)
            positive.append((name, prior.in_units(unit)))
        else:
            prior = POSITIVE[name].in_units(1.0 / unit)
            positive.append((name, POSITIVE[name]))
        words[name] = str(prior)
    return PriorSet(intercept, tuple(coefficients), tuple(positive), words)


def _intercept(given: dict[str, str], family: Family, scale: UserScale, start: float) -> tuple[Prior, str]:
    unit, mean = scale.response_scale, scale.response_mean
    if INTERCEPT in given:
        prior = read_prior(given[INTERCEPT], "prior of Intercept", for_positive=False)
        return _moved(prior, mean).in_units(unit), str(prior)
    location = 0.0 if family.has_scale else float(round(start))
    return Prior("Normal", (location, WIDTH)), str(Prior("Normal", (mean + unit * location, unit * WIDTH)))


def _moved(prior: Prior, origin: float) -> Prior:
    """The prior of value - origin."""
    place = {"Normal": 0, "Cauchy": 0, "Laplace": 0, "StudentT": 1}.get(prior.name)
    if place is None:
        return prior
    numbers = [number - origin * (index == place) for index, number in enumerate(prior.numbers)]
    return Prior(prior.name, tuple(numbers))


def _check_tail(name: str, prior: Prior) -> None:
    require(
        name == "sigma" or prior.name != "HalfFlat",
        f"prior of {name}",
        got="Flat",
        expected="a proper prior",
        fix=f"The likelihood does not vanish as {name} grows, so there would be no posterior. Leave it out.",
    )


def _check_names(given: dict[str, str], family: Family, design: Design) -> None:
    known = [*([INTERCEPT] if design.has_intercept else []), COEFFICIENTS, *(term.name for term in design.terms)]
    known += family.positive
    for name in given:
        if name not in known:
            close = list(close_to(str(name), known))
            raise InputError(
                "priors",
                got=f"a prior for {name!r}",
                expected=f"names among {known}",
                fix=f"Did you mean {' or '.join(map(repr, close))}?" if close else "Leave it out.",
            )
