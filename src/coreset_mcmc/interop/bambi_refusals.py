"""Where a Bambi model is not what it says, and what to do instead."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import require

POTENTIAL = (
    "Leave the weights out of the formula, build the model, and add them as a potential, whose rows convert: with "
    "model.backend.model as weighted: pm.Potential('weights', (w - 1) * pm.logp(weighted['y'], y)). Then "
    "cm.from_pymc(weighted)."
)


def check_weights(model: Any) -> None:
    """Bambi hands the parameters of a weighted response on by their places, which may be those of others.

    ``weighted(y, w)`` of the family gamma has a mean and a deviation, which become a shape and a rate.
    """
    term = model.response_component.term
    if not term.is_weighted:
        return
    given = _parameters(model.family)
    order = _places(model.family)
    require(
        [name for name in order if name in given] == order[: len(given)] and set(given) <= set(order),
        f"response {term.name}",
        got=f"weighted() of the family {model.family.name!r}, to which Bambi gives its parameters in the wrong order",
        expected="a family whose weighted log-density is that of the family",
        fix=POTENTIAL,
    )


def _parameters(family: Any) -> list[str]:
    """What Bambi gives to the distribution, by name."""
    import pytensor.tensor as pt

    values: dict[str, Any] = {name: pt.vector(name) for name in family.likelihood.params}
    change = getattr(family, "transform_backend_kwargs", None)
    return list(change(values) if change is not None else values)


def _places(family: Any) -> list[str]:
    """The order in which the distribution takes parameters that have no name."""
    from bambi.backend.utils import get_distribution_from_likelihood

    return inspect.getfullargspec(get_distribution_from_likelihood(family.likelihood).dist).args[1:]


def check_start(model: Any) -> None:
    """Bambi takes its default priors from the response, infinite bounds included."""
    point = model.backend.model.initial_point(0)
    wrong = [name for name, value in point.items() if not np.all(np.isfinite(value))]
    require(
        not wrong,
        f"Bambi model {model.formula.main!r}",
        got=f"a start that is no number ({', '.join(wrong)}), because the default priors are not",
        expected="priors with finite parameters",
        fix="Bambi computes them from the response and its bounds, which are infinite here: give priors=... for these.",
    )
