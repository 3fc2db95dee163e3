"""Rows of a Bambi model for another data frame, by Bambi's own terms.

The PyMC model that Bambi builds holds arrays without names: a design matrix with its means taken out, indices of
groups, offsets, numbers of trials, bounds. Each is recognised by its values on the rows of the model and made anew from
the new frame, with the means, knots and levels of the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.data.rows import Rows


@dataclass(frozen=True)
class Part:
    """One of the arrays that Bambi makes of a data frame."""

    name: str
    own: np.ndarray
    """On the rows of the model."""
    on: Callable[[Any], np.ndarray]
    """On another frame."""


@dataclass(frozen=True)
class NewRows:
    """From a data frame to rows of the model, as far as new responses depend on them."""

    formula: str
    columns: Mapping[str, tuple[Part, ...]]
    """What may make each of the arrays; more than one if they are equal on the rows of the model."""
    shapes: Mapping[str, tuple[int, ...]]
    """Of one row."""
    unknown: tuple[str, ...]
    """Arrays that nothing makes."""

    def __call__(self, frame: Any) -> Any:
        import pandas as pd

        if isinstance(frame, Rows) or (isinstance(frame, Mapping) and set(self.columns) <= set(frame)):
            return frame
        require(
            isinstance(frame, pd.DataFrame),
            "new rows",
            got=type(frame).__name__,
            expected=f"a data frame with the predictors of {self.formula!r}",
            fix="Pass a pandas.DataFrame.",
        )
        require(
            not self.unknown,
            f"new rows of {self.formula!r}",
            got=f"{len(self.unknown)} arrays of the model that cannot be made of a data frame (an hsgp term with by=, "
            "say)",
            expected="terms that Bambi evaluates on new data",
            fix="Let Bambi predict with these draws: model.predict(fit.to_inferencedata(), data=frame).",
        )
        return {name: self._column(name, parts, frame) for name, parts in self.columns.items()}

    def _column(self, name: str, parts: tuple[Part, ...], frame: Any) -> np.ndarray:
        made = [self._made(part, frame) for part in parts]
        require(
            all(np.array_equal(one.reshape(len(frame), -1), made[0].reshape(len(frame), -1)) for one in made),
            f"new rows of {self.formula!r}",
            got=f"different values for {' and '.join(part.name for part in parts)}, which are the same in all rows of "
            "the model",
            expected="terms that can be told apart",
            fix="Leave one of them out of the formula: the model cannot tell what belongs to which.",
        )
        return made[0].reshape(len(frame), *self.shapes[name])

    def _made(self, part: Part, frame: Any) -> np.ndarray:
        try:
            made = np.asarray(part.on(frame))
        except InputError:
            raise
        except Exception as error:  # whatever formulae raises about columns and levels
            words = str(error).strip().splitlines()
            raise InputError(
                f"new rows of {self.formula!r}",
                got=f"{type(error).__name__} while making {part.name}{': ' + words[0] if words else ''}",
                expected="a data frame with the columns of the formula and levels that the model has seen",
                fix=f"The frame has {', '.join(map(str, frame.columns))}.",
            ) from error
        return np.broadcast_to(made, (len(frame),)) if made.ndim == 0 else made


def new_rows_of(model: Any, data: Mapping[str, np.ndarray], needed: set[str]) -> NewRows:
    """What makes the ``needed`` arrays among the data of a built Bambi model."""
    parts = list(_parts(model))
    response = model.response_component.term
    found = {
        name: tuple(part for part in parts if _is_equal(part.own, values)) or _without_frame(values, name, response)
        for name, values in data.items()
        if name in needed
    }
    return NewRows(
        str(model.formula.main),
        {name: made for name, made in found.items() if made},
        {name: data[name].shape[1:] for name in found},
        tuple(name for name, made in found.items() if not made),
    )


def _without_frame(values: np.ndarray, name: str, response: Any) -> tuple[Part, ...]:
    """Arrays that are the same in all rows, and the response, where it is there to tell the number of rows."""
    is_response = name in (response.name, response.alias)
    if not is_response and not np.all(values == values[:1]):
        return ()
    return (Part(name, values, lambda frame: np.repeat(values[:1], len(frame), axis=0)),)


def _is_equal(one: np.ndarray, other: np.ndarray) -> bool:
    if one.size != other.size or len(one) != len(other):
        return False
    return np.array_equal(one.reshape(len(one), -1), other.reshape(len(other), -1))


def _parts(model: Any) -> Iterator[Part]:
    for name, part in model.backend.distributional_components.items():
        yield from _of_component(name, part)
    yield from _of_response(model)


def _of_component(name: str, part: Any) -> Iterator[Part]:
    component = part.component
    if component.common_terms:
        terms = list(component.common_terms.values())
        own = np.column_stack([term.data for term in terms])
        centred = part.design_matrix_without_intercept is not None
        means = own.mean(0) if centred else np.zeros(own.shape[1])
        yield Part(
            f"the predictors of {name}",
            own - means if centred else own,
            lambda frame: np.column_stack([term.term.eval_new_data(frame) for term in terms]) - means,
        )
    for term in component.offset_terms.values():
        yield Part(term.name, np.asarray(term.data).squeeze(), partial(_evaluated, term))
    for term in component.hsgp_terms.values():
        if term.by_levels is None:
            yield Part(term.name, _basis(term, np.asarray(term.data)), partial(_new_basis, term))
    for term in component.group_specific_terms.values():
        yield Part(term.name, np.asarray(term.predictor), term.term.expr.eval_new_data)
        yield Part(f"the groups of {term.name}", term.group_index, partial(_groups, term))


def _evaluated(term: Any, frame: Any) -> np.ndarray:
    return np.asarray(term.term.eval_new_data(frame)).squeeze()


def _basis(term: Any, x: np.ndarray) -> np.ndarray:
    """Basis functions of a Gaussian process at these places."""
    scale = term.maximum_distance if term.scale_predictors else 1.0
    return np.asarray(term.hsgp.prior_linearized((x.reshape(len(x), -1) - term.mean) / scale)[0].eval())


def _new_basis(term: Any, frame: Any) -> np.ndarray:
    return _basis(term, np.asarray(term.term.eval_new_data(frame)))


def _groups(term: Any, frame: Any) -> np.ndarray:
    """Numbers of groups; a new group has no effect yet."""
    import formulae

    before = formulae.config["EVAL_UNSEEN_CATEGORIES"]
    formulae.config["EVAL_UNSEEN_CATEGORIES"] = "silent"
    try:
        is_in = np.asarray(term.term.factor.eval_new_data(frame))
    finally:
        formulae.config["EVAL_UNSEEN_CATEGORIES"] = before
    is_new = ~is_in.any(axis=1)
    require(
        not is_new.any(),
        f"new rows, term {term.name!r}",
        got=f"a group in row {int(np.argmax(is_new))} that no row of the model has",
        expected=f"groups among {', '.join(map(str, term.groups[:10]))}{', ...' if len(term.groups) > 10 else ''}",
        fix="Leave these rows out; Bambi's model.predict(..., sample_new_groups=True) draws effects for new groups.",
    )
    return np.asarray(is_in.argmax(1))


def _filled(value: float, frame: Any) -> np.ndarray:
    return np.full(len(frame), value)


def _column_of_response(model: Any, place: int, frame: Any) -> np.ndarray:
    from bambi.utils import response_evaluate_new_data

    return np.asarray(response_evaluate_new_data(model, frame))[:, place]


def _of_response(model: Any) -> Iterator[Part]:
    """What new responses need besides predictors: trials, bounds and weights, not the response itself."""
    from bambi.utils import response_evaluate_new_data

    term = model.response_component.term
    own = np.asarray(term.data)
    if own.ndim < 2:
        return
    if term.is_censored:
        for code, bound, side in ((-1, -np.inf, "left"), (1, np.inf, "right")):
            limits = np.where(own[:, 1] == code, own[:, 0], bound)
            yield Part(f"{side} censoring", limits, partial(_filled, bound))
    elif term.is_truncated or term.is_constrained:
        for place in (1, 2):
            yield Part("bounds of the response", own[:, place], partial(_column_of_response, model, place))
    elif term.is_weighted:
        yield Part("weights", own[:, 1], partial(_filled, 1.0))
    else:
        trials = model.response_component.response
        is_share = trials.kind == "proportion"
        yield Part(
            "the number of trials",
            own[:, 1] if is_share else own.sum(1),
            lambda frame: (
                np.asarray(trials.evaluate_new_data(frame)).astype(int)
                if is_share
                else response_evaluate_new_data(model, frame).sum(1).astype(int)
            ),
        )
