"""Priors of every parameter: the user's where they are given, weakly informative defaults elsewhere.

With s_j the standard deviation of a column and s_y that of the response,

    coefficient j   Normal(0, 2.5 s_y / s_j)      gaussian, t
                    Normal(0, 2.5 / s_j)          all others
    Intercept       Normal(mean(y), 2.5 s_y)      gaussian, t
                    Normal(link(mean(y)), 2.5)    the others, its location rounded to a whole number
    threshold       Normal(m, 1), m evenly from -2 to 2
    sigma           HalfStudentT(4, s_y)
    nu              Gamma(2, 0.1)
    alpha, kappa    HalfCauchy(1)
    psi             Beta(2, 2)
    1|g_sigma       HalfNormal(sqrt(2.5^2 s_y^2 + sum_j sd_j^2 m_j^2)), sd_j that of Bambi's prior of coefficient j
    x|g_sigma       HalfNormal(2.5 s_y / s_x)

The intercept, and thresholds that stand for it, are those at the means of the predictors, as in Bambi and rstanarm.
Without an intercept nothing is centred, and root mean squares stand for standard deviations. With an inverse link,
one over the mean response takes the place of s_y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.design import Term
from coreset_mcmc.tables.families.family import ORDERED, POSITIVE, Family, Parameter
from coreset_mcmc.tables.formula_check import close_to
from coreset_mcmc.tables.groups import GroupTerm
from coreset_mcmc.tables.measured_design import Design
from coreset_mcmc.tables.priors import LINE, Prior, in_words, read_prior
from coreset_mcmc.tables.scale import UserScale
from coreset_mcmc.tables.standardised import COEFFICIENTS, INTERCEPT

WIDTH = 2.5
OF_PARAMETERS = {
    "sigma": Prior("HalfStudentT", (4.0, 1.0)),
    "nu": Prior("Gamma", (2.0, 0.1)),
    "alpha": Prior("HalfCauchy", (1.0,)),
    "kappa": Prior("HalfCauchy", (1.0,)),
    "psi": Prior("Beta", (2.0, 2.0)),
}
"""Defaults in standardised units."""
SMALLEST_SCALE = 1e-6
WITH_OWN_WIDTH = ("bernoulli", "binomial")
"""Families for which Bambi has narrower priors with the links logit and probit."""


@dataclass(frozen=True)
class PriorSet:
    """Priors of the standardised numbers, and those of the user's parameters in words."""

    intercept: Prior | None
    coefficients: tuple[Prior, ...]
    parameters: tuple[tuple[Prior, ...], ...]
    groups: tuple[tuple[Prior, ...], ...]
    in_words: dict[str, str]


def choose_priors(given: dict[str, str], design: Design, scale: UserScale, start: float) -> PriorSet:
    """Read the given priors and fill in the others; ``start`` is the standardised intercept of the mean response."""
    family = scale.family
    _check_names(given, family, design, scale.groups)
    words: dict[str, str] = {}
    intercept = None
    if design.has_intercept and not family.is_ordered:
        intercept, words[INTERCEPT] = _intercept(given, scale, start)
    coefficients: list[Prior] = []
    for term in design.terms:
        units = scale.units[term.columns]
        key = term.name if term.name in given else COEFFICIENTS
        if key in given:
            prior = read_prior(given[key], f"prior of {key}", LINE)
            coefficients.extend(prior.in_units(unit) for unit in units)
            words[term.name] = str(prior)
        else:
            coefficients.extend([Prior("Normal", (0.0, WIDTH))] * len(units))
            words[term.name] = in_words([Prior("Normal", (0.0, WIDTH * unit)) for unit in units], term.levels)
    parameters = tuple(_of_parameter(parameter, given, scale, words) for parameter in family.parameters)
    groups = tuple(_of_group(group, given, design, scale, words) for group in scale.groups)
    return PriorSet(intercept, tuple(coefficients), parameters, groups, words)


def _intercept(given: dict[str, str], scale: UserScale, start: float) -> tuple[Prior, str]:
    unit, mean = scale.predictor_unit, scale.response_mean
    if INTERCEPT in given:
        prior = read_prior(given[INTERCEPT], "prior of Intercept", LINE)
        return _moved(prior, mean).in_units(unit), str(prior)
    location = 0.0 if scale.family.has_scale or scale.family.takes_levels else float(round(start))
    return Prior("Normal", (location, WIDTH)), str(Prior("Normal", (mean + unit * location, unit * WIDTH)))


def _of_parameter(
    parameter: Parameter, given: dict[str, str], scale: UserScale, words: dict[str, str]
) -> tuple[Prior, ...]:
    name, unit = parameter.name, scale.unit_of(parameter)
    if parameter.support == ORDERED:
        return _of_thresholds(name, given, scale.family.num_levels - 1, words)
    if name in given:
        prior = read_prior(given[name], f"prior of {name}", parameter.support)
        _check_tail(name, prior)
        words[name] = str(prior)
        return (prior.in_units(unit),)
    words[name] = str(OF_PARAMETERS[name].in_units(1.0 / unit))
    return (OF_PARAMETERS[name],)


def _of_thresholds(name: str, given: dict[str, str], count: int, words: dict[str, str]) -> tuple[Prior, ...]:
    if name in given:
        prior = read_prior(given[name], f"prior of {name}", LINE)
        require(
            prior.name != "Flat",
            f"prior of {name}",
            got="Flat",
            expected="a proper prior",
            fix="Thresholds beyond the last rows would have no posterior. Leave it out.",
        )
        words[name] = str(prior)
        return (prior,) * count
    priors = [Prior("Normal", (float(mean), 1.0)) for mean in np.round(np.linspace(-2.0, 2.0, count), 2)]
    words[name] = in_words(priors, [str(number) for number in range(count)])
    return tuple(priors)


def _of_group(
    group: GroupTerm, given: dict[str, str], design: Design, scale: UserScale, words: dict[str, str]
) -> tuple[Prior, ...]:
    """Of the spread of each column."""
    name, units = f"{group.name}_sigma", scale.group_units(group)
    if name in given:
        prior = read_prior(given[name], f"prior of {name}", POSITIVE)
        require(
            prior.name != "HalfFlat",
            f"prior of {name}",
            got="Flat",
            expected="a proper prior",
            fix="With few groups the likelihood does not say how far apart they may be. Leave it out.",
        )
        words[name] = str(prior)
        return tuple(prior.in_units(float(unit)) for unit in units)
    width = WIDTH * scale.predictor_unit
    if group.columns == (None,):
        widths = [_width_of_intercept(given, design, scale, width)]
    else:
        widths = [width / float(scale.multiplier_scales[column]) for column in group.columns if column is not None]
    priors = [Prior("HalfNormal", (width,)) for width in widths]
    words[name] = in_words(priors, group.levels)
    return tuple(prior.in_units(float(unit)) for prior, unit in zip(priors, units, strict=True))


def _width_of_intercept(given: dict[str, str], design: Design, scale: UserScale, width: float) -> float:
    """Bambi's standard deviation of an intercept where predictors are zero; terms with a prior of the user's are left
    out."""
    total = width**2
    if COEFFICIENTS in given:
        return width
    for place, term in enumerate(design.terms):
        if term.name not in given:
            widths = _bambi_widths(term, design, scale, width, float(design.row_sum_scales[place]))
            total += float(np.sum((widths * design.raw_means[term.columns]) ** 2))
    return float(np.sqrt(total))


def _bambi_widths(term: Term, design: Design, scale: UserScale, width: float, row_sum_scale: float) -> np.ndarray:
    family, scales = scale.family, design.deviations[term.columns]
    if family.name in WITH_OWN_WIDTH and family.link in ("logit", "probit"):
        if term.is_categorical:
            return np.ones(len(scales))
        return 1.0 / scales if len(scales) == 1 else np.full(len(scales), 1.0 / max(row_sum_scale, SMALLEST_SCALE))
    return width / scales


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


def _check_names(given: dict[str, str], family: Family, design: Design, groups: Sequence[GroupTerm]) -> None:
    has_intercept = design.has_intercept and not family.is_ordered
    known = [*([INTERCEPT] if has_intercept else []), COEFFICIENTS, *(term.name for term in design.terms)]
    known += [parameter.name for parameter in family.parameters]
    known += [f"{group.name}_sigma" for group in groups]
    for name in given:
        if name not in known:
            close = list(close_to(str(name), known))
            raise InputError(
                "priors",
                got=f"a prior for {name!r}",
                expected=f"names among {known}",
                fix=f"Did you mean {' or '.join(map(repr, close))}?" if close else "Leave it out.",
            )
