"""Between the standardised numbers on which chains move and the parameters of the user, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Position
from coreset_mcmc.tables.design import Term
from coreset_mcmc.tables.standardised import COEFFICIENTS, INTERCEPT, logarithms


@dataclass(frozen=True, eq=False)
class UserScale:
    """beta_j = z_j s_y / s_j, Intercept = m_y + s_y z_0 - sum_j m_j beta_j, sigma = s_y exp(log_sigma)."""

    terms: tuple[Term, ...]
    means: np.ndarray
    scales: np.ndarray
    response_mean: float
    response_scale: float
    has_intercept: bool

    @property
    def units(self) -> np.ndarray:
        """beta_j / z_j."""
        return self.response_scale / self.scales

    def constrain(self, position: Position) -> dict[str, jax.Array]:
        """Parameters by name."""
        values: dict[str, jax.Array] = {}
        coefficients = position[COEFFICIENTS] * self.units if COEFFICIENTS in position else jnp.zeros(0)
        if self.has_intercept:
            at_centre = self.response_mean + self.response_scale * position[INTERCEPT]
            values[INTERCEPT] = at_centre - jnp.dot(self.means, coefficients)
        for term in self.terms:
            own = coefficients[term.columns]
            values[term.name] = own if term.levels is not None else own[0]
        for name, logarithm in logarithms(position).items():
            values[name] = jnp.exp(logarithm) * (self.response_scale if name == "sigma" else 1.0)
        return values

    def unconstrain(self, values: Mapping[str, Any], position: Position) -> Position:
        """The position with the user's values put in; an intercept that is not given stays at the centre."""
        known = list(self.constrain(position))
        unknown = [name for name in values if name not in known]
        require(
            not unknown,
            "initvals",
            got=f"unknown names {unknown}",
            expected=f"names among {known}",
            fix="Leave out what should start where the model does.",
        )
        result = dict(position)
        if COEFFICIENTS in position:
            coefficients = np.array(position[COEFFICIENTS]) * self.units
            for term in self.terms:
                if term.name in values:
                    coefficients[term.columns] = self._shaped(term, values[term.name])
            result[COEFFICIENTS] = coefficients / self.units
        else:
            coefficients = np.zeros(0)
        if INTERCEPT in values:
            at_centre = float(values[INTERCEPT]) + float(self.means @ coefficients)
            result[INTERCEPT] = np.array((at_centre - self.response_mean) / self.response_scale)
        for name in logarithms(position):
            if name in values:
                value = float(values[name]) / (self.response_scale if name == "sigma" else 1.0)
                require(value > 0, f"initvals {name}", got=values[name], expected="a number above 0", fix="Pass one.")
                result[f"log_{name}"] = np.log(value)
        return result

    @staticmethod
    def _shaped(term: Term, value: Any) -> np.ndarray:
        width = term.columns.stop - term.columns.start
        array = np.asarray(value, float).reshape(-1)
        if array.size != width:
            raise InputError(
                f"initvals {term.name}",
                got=f"{array.size} values",
                expected=f"{width}",
                fix="Pass one for each column.",
            )
        return array
