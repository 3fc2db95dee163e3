"""Families by their names, and which links they have."""

from __future__ import annotations

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.tables.families.counts import NegativeBinomial, Poisson
from coreset_mcmc.tables.families.family import Family
from coreset_mcmc.tables.families.levels import Categorical, Cumulative
from coreset_mcmc.tables.families.measured import Gaussian, StudentT
from coreset_mcmc.tables.families.outcomes import Bernoulli, Binomial
from coreset_mcmc.tables.families.positive import Beta, Exponential, Gamma, Weibull
from coreset_mcmc.tables.families.zeros import (
    HurdleNegativeBinomial,
    HurdlePoisson,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
)

KINDS: dict[str, type[Family]] = {
    "gaussian": Gaussian,
    "bernoulli": Bernoulli,
    "poisson": Poisson,
    "negativebinomial": NegativeBinomial,
    "t": StudentT,
    "binomial": Binomial,
    "gamma": Gamma,
    "beta": Beta,
    "exponential": Exponential,
    "weibull": Weibull,
    "zero_inflated_poisson": ZeroInflatedPoisson,
    "zero_inflated_negativebinomial": ZeroInflatedNegativeBinomial,
    "hurdle_poisson": HurdlePoisson,
    "hurdle_negativebinomial": HurdleNegativeBinomial,
    "cumulative": Cumulative,
    "categorical": Categorical,
}
FAMILIES: dict[str, Family] = {name: kind(name, kind.links[0]) for name, kind in KINDS.items()}
"""Each with the link that it has if none is asked for."""
OTHER_NAMES = {
    **{"studentt": "t", "normal": "gaussian", "logistic": "bernoulli", "nb": "negativebinomial"},
    **{"ordinal": "cumulative", "ordered": "cumulative", "softmax": "categorical", "multinomial": "categorical"},
    **{"zip": "zero_inflated_poisson", "zinb": "zero_inflated_negativebinomial", "hurdle": "hurdle_poisson"},
    **{"lognormal": "gaussian with np.log(y) ~ ...", "logit": "bernoulli", "probit": "bernoulli with link='probit'"},
}
REFUSED_LINKS = {
    "identity": "a straight line leaves the range that the mean can have, and most of the posterior would have no "
    "density there",
}


def _plain(name: object) -> str:
    return "".join(character for character in str(name).lower() if character.isalnum())


def family_named(name: str, link: str | None = None) -> Family:
    """A family by one of its names; spaces, hyphens, underscores and capitals do not matter."""
    by_plain_name = {_plain(known): known for known in FAMILIES}
    plain = _plain(name)
    chosen = by_plain_name.get(plain) or OTHER_NAMES.get(plain)
    if chosen not in FAMILIES:
        raise InputError(
            "family",
            got=repr(name),
            expected=f"one of {', '.join(FAMILIES)}",
            fix=f"Write it as {chosen}."
            if chosen
            else "Other families come from Bambi (cm.from_bambi) or a cm.Model of your own.",
        )
    return FAMILIES[chosen] if link is None else _with_link(chosen, link)


def _with_link(name: str, link: str) -> Family:
    kind, plain = KINDS[name], _plain(link)
    plain = {"inversepower": "inverse", "reciprocal": "inverse", "logistic": "logit"}.get(plain, plain)
    if plain not in kind.links:
        reason = REFUSED_LINKS.get(plain, f"that is what the family {name} has")
        raise InputError(
            "link",
            got=f"{link!r} for the family {name}",
            expected=" or ".join(kind.links),
            fix=f"Leave it out: {reason}." if plain in REFUSED_LINKS else f"Leave it out for {kind.links[0]}.",
        )
    return kind(name, plain)
