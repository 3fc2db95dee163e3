"""Priors as text, "Normal(0, 2.5)", and their log-densities on the scale on which chains move.

A coefficient is a unit times the standardised number on which chains move, and so is sigma: value = unit * z. Every
prior here belongs to a location-scale or a scale family, so the prior of z is of the same kind with other numbers, and
:meth:`Prior.in_units` gives it. Priors of positive parameters are written in u = log z, with the Jacobian u.

The numbers are part of the compiled program. Default priors are the same numbers in standardised units for every table,
so a second table of the same shape finds its program compiled.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.models.special import bounded_exponential, softplus
from coreset_mcmc.tables.families.family import POSITIVE, UNIT

LINE = "line"
"""All numbers; the other supports are those of the parameters of families."""
MOST_IN_WORDS = 12
"""Levels of a term whose priors are all shown in a line."""
LARGEST = 1e120
"""Beyond this the argument of a density is held, so that its square does not overflow."""


@dataclass(frozen=True)
class Kind:
    """A distribution: what its numbers are called and how they change with the unit."""

    arguments: tuple[str, ...]
    units: tuple[int, ...]
    """The power of the unit that each number is divided by: 1 for locations and scales, -1 for rates, 0 for shapes."""
    positive: tuple[str, ...]
    """Arguments that must be above zero."""
    support: str
    log_density: Callable[..., jax.Array]
    """Of z for the whole line, of u = log z or u = logit z with its Jacobian otherwise; then the numbers."""


def _standardised(z: jax.Array, location: Any, scale: Any) -> jax.Array:
    return jnp.clip((z - location) / scale, -LARGEST, LARGEST)


def _normal(z: jax.Array, location: Any, scale: Any) -> jax.Array:
    return -0.5 * _standardised(z, location, scale) ** 2 - jnp.log(scale) - 0.5 * math.log(2.0 * math.pi)


def _student_t(z: jax.Array, freedom: Any, location: Any, scale: Any) -> jax.Array:
    height = jax.scipy.special.gammaln((freedom + 1.0) / 2.0) - jax.scipy.special.gammaln(freedom / 2.0)
    height = height - 0.5 * jnp.log(freedom * math.pi) - jnp.log(scale)
    result: jax.Array = height - 0.5 * (freedom + 1.0) * jnp.log1p(_standardised(z, location, scale) ** 2 / freedom)
    return result


def _cauchy(z: jax.Array, location: Any, scale: Any) -> jax.Array:
    return -math.log(math.pi) - jnp.log(scale) - jnp.log1p(_standardised(z, location, scale) ** 2)


def _laplace(z: jax.Array, location: Any, scale: Any) -> jax.Array:
    result: jax.Array = -jnp.abs(z - location) / scale - jnp.log(2.0 * scale)
    return result


def _flat(z: jax.Array) -> jax.Array:
    return jnp.zeros_like(z)


def _half_normal(u: jax.Array, scale: Any) -> jax.Array:
    relative = u - jnp.log(scale)
    return 0.5 * math.log(2.0 / math.pi) + relative - 0.5 * bounded_exponential(2.0 * relative)


def _half_cauchy(u: jax.Array, scale: Any) -> jax.Array:
    relative = u - jnp.log(scale)
    return math.log(2.0 / math.pi) + relative - softplus(2.0 * relative)


def _half_student_t(u: jax.Array, freedom: Any, scale: Any) -> jax.Array:
    relative = u - jnp.log(scale)
    height = jax.scipy.special.gammaln((freedom + 1.0) / 2.0) - jax.scipy.special.gammaln(freedom / 2.0)
    height = height + math.log(2.0) - 0.5 * jnp.log(freedom * math.pi)
    result: jax.Array = height + relative - 0.5 * (freedom + 1.0) * softplus(2.0 * relative - jnp.log(freedom))
    return result


def _exponential(u: jax.Array, rate: Any) -> jax.Array:
    relative = u + jnp.log(rate)
    return relative - bounded_exponential(relative)


def _gamma(u: jax.Array, shape: Any, rate: Any) -> jax.Array:
    relative = u + jnp.log(rate)
    result: jax.Array = shape * relative - bounded_exponential(relative) - jax.scipy.special.gammaln(shape)
    return result


def _beta(u: jax.Array, one: Any, other: Any) -> jax.Array:
    gammaln = jax.scipy.special.gammaln
    height = gammaln(one + other) - gammaln(one) - gammaln(other)
    result: jax.Array = height - one * softplus(-u) - other * softplus(u)
    return result


KINDS = {
    "Normal": Kind(("mu", "sigma"), (1, 1), ("sigma",), LINE, _normal),
    "StudentT": Kind(("nu", "mu", "sigma"), (0, 1, 1), ("nu", "sigma"), LINE, _student_t),
    "Cauchy": Kind(("alpha", "beta"), (1, 1), ("beta",), LINE, _cauchy),
    "Laplace": Kind(("mu", "b"), (1, 1), ("b",), LINE, _laplace),
    "Flat": Kind((), (), (), LINE, _flat),
    "HalfNormal": Kind(("sigma",), (1,), ("sigma",), POSITIVE, _half_normal),
    "HalfCauchy": Kind(("beta",), (1,), ("beta",), POSITIVE, _half_cauchy),
    "HalfStudentT": Kind(("nu", "sigma"), (0, 1), ("nu", "sigma"), POSITIVE, _half_student_t),
    "Exponential": Kind(("lam",), (-1,), ("lam",), POSITIVE, _exponential),
    "Gamma": Kind(("alpha", "beta"), (0, -1), ("alpha", "beta"), POSITIVE, _gamma),
    "Beta": Kind(("alpha", "beta"), (0, 0), ("alpha", "beta"), UNIT, _beta),
    "HalfFlat": Kind((), (), (), POSITIVE, lambda u: u),
}
"""Names and arguments as in PyMC. On a positive parameter "Flat" stands for "HalfFlat"."""


@dataclass(frozen=True)
class Prior:
    """A distribution and its numbers."""

    name: str
    numbers: tuple[float, ...] = ()

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    def in_units(self, unit: float) -> Prior:
        """The prior of z where this is the prior of unit * z."""
        pairs = zip(self.numbers, self.kind.units, strict=True)
        return Prior(self.name, tuple(float(number / unit**power) for number, power in pairs))

    def log_density(self, at: jax.Array) -> jax.Array:
        """Of z; of u = log z if the prior is one of positive numbers."""
        return self.kind.log_density(at, *(jnp.float64(number) for number in self.numbers))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{number:.4g}' for number in self.numbers)})" if self.numbers else "Flat"


def joint_log_density(priors: Sequence[Prior], z: jax.Array) -> jax.Array:
    """The sum over the elements of z of their log-densities; elements with the same kind of prior go together."""
    total = jnp.zeros((), z.dtype)
    for name in dict.fromkeys(prior.name for prior in priors):
        places = [place for place, prior in enumerate(priors) if prior.name == name]
        numbers = np.array([priors[place].numbers for place in places], float).reshape(len(places), -1)
        chosen = z if len(places) == len(priors) else z[np.array(places)]
        columns = [column[0] if np.all(column == column[0]) else jnp.asarray(column) for column in numbers.T]
        total = total + jnp.sum(KINDS[name].log_density(chosen, *columns))
    return total


def in_words(priors: Sequence[Prior], names: Sequence[str] | None = None) -> str:
    """One text for the priors of all columns of a term, which have these names.

    Of very many, those of the first and the last by their widths are shown.
    """
    texts = list(map(str, priors))
    if len(set(texts)) == 1:
        return texts[0]
    named = [f"{name}: {text}" for name, text in zip(names or map(str, range(len(texts))), texts, strict=True)]
    if len(named) <= MOST_IN_WORDS:
        return "; ".join(named)
    order = np.argsort([prior.numbers[-1] for prior in priors], kind="stable")
    return f"{len(named)} levels, from {named[order[0]]} to {named[order[-1]]}"


def read_prior(text: Any, subject: str, support: str) -> Prior:
    """Parse "Normal(0, 2.5)" or "Normal(mu=0, sigma=2.5)" for a parameter with this support."""
    name, positional, named = _call_of(text, subject)
    name = {"Uniform": "Flat", "Student": "StudentT", "HalfT": "HalfStudentT"}.get(name, name)
    if name == "Flat" and support == POSITIVE:
        name = "HalfFlat"
    if name not in KINDS or (name == "HalfFlat" and support != POSITIVE):
        raise _unsuitable(text, subject, support)
    kind = KINDS[name]
    unknown = [key for key in named if key not in kind.arguments[len(positional) :]]
    numbers = [*positional, *(named[key] for key in kind.arguments[len(positional) :] if key in named)]
    signature = f"{name}({', '.join(kind.arguments)})" if kind.arguments else "Flat"
    require(
        len(numbers) == len(kind.arguments) and not unknown,
        subject,
        got=repr(text),
        expected=f"{signature}, all of its numbers",
        fix="Names and order of the numbers are those of PyMC.",
    )
    for argument, number in zip(kind.arguments, numbers, strict=True):
        require(
            math.isfinite(number) and (argument not in kind.positive or number > 0),
            subject,
            got=f"{argument} = {number:g} in {text!r}",
            expected="a finite number above zero" if argument in kind.positive else "a finite number",
            fix=f"The form is {signature}.",
        )
    if kind.support != support:
        raise _unsuitable(text, subject, support)
    return Prior(name, tuple(float(number) for number in numbers))


def _unsuitable(text: Any, subject: str, support: str) -> InputError:
    suitable = [name for name, kind in KINDS.items() if kind.support == support and name != "HalfFlat"]
    where = {
        LINE: "all numbers",
        POSITIVE: "positive numbers, because the parameter is positive",
        UNIT: "numbers between 0 and 1, because the parameter is a probability",
    }[support]
    example = {LINE: "Normal(0, 1)", POSITIVE: "HalfNormal(1)", UNIT: "Beta(2, 2)"}[support]
    return InputError(
        subject,
        got=repr(text),
        expected=f"a distribution over {where}: {', '.join(suitable)}{', Flat' if support == POSITIVE else ''}",
        fix=f"For example '{example}'.",
    )


def _call_of(text: Any, subject: str) -> tuple[str, list[float], dict[str, float]]:
    """The name and the numbers of a call, read without evaluating anything."""
    broken = InputError(
        subject,
        got=repr(text),
        expected="text such as 'Normal(0, 2.5)'",
        fix=f"Known distributions: {', '.join(name for name in KINDS if name != 'HalfFlat')}.",
    )
    if not isinstance(text, str):
        raise broken
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise broken from error
    if isinstance(node, ast.Name):
        return node.id, [], {}
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise broken
    numbers = [_number(argument) for argument in node.args]
    named = {str(item.arg): _number(item.value) for item in node.keywords}
    if any(number is None for number in [*numbers, *named.values()]):
        raise broken
    return (
        node.func.id,
        [number for number in numbers if number is not None],
        {key: number for key, number in named.items() if number is not None},
    )


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _number(node.operand)
        return None if inner is None else (-inner if isinstance(node.op, ast.USub) else inner)
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, int | float) and type(node.value) is not bool
    try:
        return float(node.value) if is_number else None  # type: ignore[attr-defined]
    except OverflowError:
        return math.inf
