"""What a fit leaves behind: the coreset, the draws, and an account of the work.

Everything lives in one ``xarray.DataTree`` in ArviZ's layout, so one netCDF file holds it all and any tool that reads
ArviZ files can open it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np
import pandas as pd
import xarray

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.types import Position
from coreset_mcmc.data import ArrayData, to_batch
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.driver.run import Run
from coreset_mcmc.methods.law import Law
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.user_scale import named_leaves, shown_draws
from coreset_mcmc.results.coreset import Coreset
from coreset_mcmc.results.full_posterior import exact_draws, reweighted
from coreset_mcmc.results.inferencedata import to_inferencedata
from coreset_mcmc.results.loo import loo
from coreset_mcmc.results.predictive import QUANTILES, predict

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData

    from coreset_mcmc.verdict import Trust

ATTRIBUTE = "coreset_mcmc"
STAGES = ("pilot", "training", "sampling", "check")
ENGINE: Literal["h5netcdf"] = "h5netcdf"
POSITIONS = "unconstrained_posterior"
"""The group of positions on which the chains moved, where ``posterior`` shows something else or less."""


@dataclass(frozen=True)
class Fit:
    """A trained coreset and draws from its posterior."""

    tree: xarray.DataTree
    """Groups ``posterior``, ``sample_stats``, ``observed_data`` (of the coreset), ``coreset`` and ``training``; and
    ``unconstrained_posterior`` if the chains moved on another scale. ArviZ functions take it as it is.
    """
    coreset_or_none: Coreset | None
    pilot: Cost
    training: Cost
    sampling: Cost
    check: Cost
    """The final estimate of the KL."""
    kl_estimate: float
    """Estimated KL(coreset posterior || full posterior) in nats, from draws that training has not seen.

    Half the variance over draws of the difference of the two log-likelihoods. Reliable when small; it cannot see modes
    that the chains never visited. NaN for methods without a coreset.
    """
    settings: Mapping[str, Any]
    model: Model | None = field(default=None, repr=False)
    """What was fitted, bound to its data; None after :func:`load` unless given there."""
    data: Any = field(default=None, repr=False)
    """The rows it was fitted to, as the user passed them."""
    recipe: Mapping[str, Any] | None = field(default=None, repr=False)
    """Options of ``fit`` that make another one like it with another seed; None after :func:`load`."""

    @property
    def posterior(self) -> xarray.Dataset:
        """Draws of each variable, (chain, draw, ...), on the user's scale: the group ``posterior`` of the tree."""
        return self.tree["posterior"].to_dataset()

    @property
    def has_coreset(self) -> bool:
        """Whether the method has a coreset; subsampling MCMC and the full-data references have none."""
        return self.coreset_or_none is not None

    @property
    def coreset(self) -> Coreset:
        """Rows and weights."""
        if self.coreset_or_none is None:
            raise InputError(
                "fit.coreset",
                got=f"a fit by {self.settings['method']}, which has no coreset",
                expected="a coreset method",
                fix="Ask fit.has_coreset first.",
            )
        return self.coreset_or_none

    @property
    def is_interrupted(self) -> bool:
        return "interrupted" in (self.training.reason, self.sampling.reason)

    def summary(self, **options: Any) -> pd.DataFrame:
        """ArviZ's table: mean, sd, interval, ESS and R-hat of each parameter."""
        import arviz_stats  # noqa: PLC0415 - takes a second

        return arviz_stats.summary(self.tree, **options)

    @double_precision
    def positions(self) -> Position:
        """Draws on the scale on which the chains moved: the model's pytree with leading chain and draw axes."""
        require(
            self.model is not None,
            "fit.model",
            got="nothing: the fit was read from a file",
            expected="the model that was fitted",
            fix="Pass it on: cm.load(path, model=..., data=...).",
        )
        assert self.model is not None
        group = self.tree[POSITIONS if POSITIONS in self.tree else "posterior"]
        start = self.model.initial_position
        structure = jax.eval_shape(start, jax.random.key(0)) if callable(start) else start
        names = named_leaves(structure, "theta") if structure is not None else list(group.data_vars)
        leaves = [group[name].to_numpy() for name in names]
        return jax.tree.unflatten(jax.tree.structure(structure), leaves) if structure is not None else leaves

    def predict(
        self,
        data: Any = None,
        *,
        draws: int = 200,
        quantiles: Sequence[float] | None = QUANTILES,
        var_names: Sequence[str] | str | None = None,
        random_seed: int = 0,
    ) -> xarray.DataTree:
        """New responses for rows, the fitted ones by default, as a tree with the group ``posterior_predictive``.

        Rows go through in blocks. By default each row gets its mean, standard deviation and quantiles over draws;
        ``quantiles=None`` keeps the draws themselves, ``draws`` times as many numbers as rows.

        Args:
            data: rows as for ``fit``; the response may be left out.
            draws: how many evenly spaced draws of the posterior are used.
            quantiles: which ones; the median and an interval of 89 % by default.
            var_names: which responses, or deterministic quantities with a value for each row.
        """
        positions, model = self.positions(), self.model
        assert model is not None
        return predict(
            model,
            positions,
            self.data if data is None else data,
            draws=draws,
            quantiles=quantiles,
            var_names=var_names,
            random_seed=random_seed,
        )

    def loo(self, data: Any = None, *, draws: int | None = 1000, reweight: bool = True) -> ELPDData:
        """Leave-one-out cross-validation over all rows, in bounded memory; compare models with ``arviz_stats.compare``.

        Args:
            data: the rows that were fitted, if the fit does not hold them.
            draws: how many evenly spaced draws are used; each costs two passes over the rows.
            reweight: correct for draws that come from the coreset posterior instead of the full one. The k-hat of
                this correction is ``influence_pareto_k`` of the result.
        """
        positions, model = self.positions(), self.model
        assert model is not None
        coreset = (self.coreset.indices, self.coreset.weights) if self.samples_coreset else None
        rows = self.data if data is None else data
        return loo(model, positions, rows, coreset=coreset, draws=draws, reweight=reweight)

    def reweight(self, *, draws: int | None = None, random_seed: int = 0) -> Fit:
        """Draws of the full posterior: those of the coreset, resampled by Pareto-smoothed importance weights.

        Each costs one pass over the rows. The k-hat of the weights, ``fit.settings["pareto_k"]``, says whether to trust
        them, and a warning says so where not. Draws repeat, so ArviZ overstates their effective sample size;
        ``fit.settings["effective_draws"]`` is that of the weights.

        Args:
            draws: how many evenly spaced draws are used; all by default.
        """
        positions, model, coreset = self._for_all_rows("reweight")
        made = reweighted(model, positions, self.data, coreset, draws=draws, seed=random_seed)
        history = jax.tree.map(lambda leaf: np.swapaxes(leaf, 0, 1), made.positions)
        settings = {"pareto_k": made.ratios.pareto_k, "effective_draws": made.ratios.effective_size}
        return self._with_draws(history, {}, {"law": "full posterior, reweighted", **settings})

    def exact(
        self,
        *,
        draws: int = 1000,
        tune: int = 100,
        chains: int = 4,
        num_inner: int | None = None,
        random_seed: int = 0,
        progressbar: bool = True,
    ) -> Fit:
        """Draws of the full posterior by delayed acceptance: the coreset proposes, all rows decide.

        Right in the long run whatever the coreset; the better it is, the more proposals pass. Each draw of each chain
        costs two passes over the rows.

        Args:
            num_inner: steps on the coreset between decisions; twice the number of parameters by default.
        """
        positions, model, coreset = self._for_all_rows("exact")
        made = exact_draws(
            model,
            positions,
            self.data,
            coreset,
            draws=draws,
            tune=tune,
            chains=chains,
            num_inner=num_inner,
            seed=random_seed,
            progressbar=progressbar,
        )
        history = jax.tree.map(lambda leaf: leaf[min(tune, len(leaf) - 1) :], made.history)
        settings = {"law": "full posterior, exact", "acceptance_rate": float(np.mean(history.acceptance_rate))}
        return self._with_draws(history.position, _statistics(history), settings, Cost.of(made))

    def trust(self, **options: Any) -> Trust:
        """Whether these draws can be trusted, in words and numbers: see :func:`coreset_mcmc.verdict`."""
        from coreset_mcmc.verdict import trust  # noqa: PLC0415 - it fits again, so it comes after ``fit``

        return trust(self, **options)

    def with_settings(self, settings: Mapping[str, Any]) -> Fit:
        """The same fit with more entries in its settings, in its file as well."""
        made = replace(self, settings={**self.settings, **settings})
        made.tree.attrs[ATTRIBUTE] = made._header()
        return made

    def _for_all_rows(self, subject: str) -> tuple[Position, Model, tuple[np.ndarray, np.ndarray]]:
        """Draws, model and coreset, for what goes from the coreset posterior to the full one."""
        require(
            self.samples_coreset,
            f"fit.{subject}",
            got=f"a fit by {self.settings['method']}",
            expected="draws of a coreset posterior",
            fix="Methods on all rows need no correction.",
        )
        positions = self.positions()
        assert self.model is not None
        return positions, self.model, (self.coreset.indices, self.coreset.weights)

    def _with_draws(
        self,
        positions: Position,
        statistics: Mapping[str, Any],
        settings: Mapping[str, Any],
        sampling: Cost | None = None,
    ) -> Fit:
        """The same fit with other draws, leaves (T, K, ...); they are of the full posterior, so there is no KL."""
        assert self.model is not None
        names = [str(name) for name in self.posterior.data_vars]
        shown = self.posterior
        dims = {name: [str(dim) for dim in shown[name].dims if dim not in ("chain", "draw")] for name in names}
        coords = {str(key): value.to_numpy() for key, value in shown.coords.items() if key not in ("chain", "draw")}
        by_chain = {name: np.swapaxes(np.asarray(value), 0, 1) for name, value in statistics.items()}
        groups = {"posterior": shown_draws(self.model, positions, names), "sample_stats": by_chain}
        tree = _tree_of({name: group for name, group in groups.items() if group}, dims=dims, coords=coords)
        for name, group in self.tree.children.items():
            if name not in ("posterior", "sample_stats", POSITIONS):
                tree[name] = group
        if POSITIONS in self.tree:
            moved = {
                name: np.swapaxes(np.asarray(leaf), 0, 1) for name, leaf in named_leaves(positions, "theta").items()
            }
            tree[POSITIONS] = _tree_of({POSITIONS: moved})[POSITIONS]
        cost = sampling or self.sampling
        made = replace(self, tree=tree, kl_estimate=float("nan"), settings={**self.settings, **settings}, sampling=cost)
        tree.attrs[ATTRIBUTE] = made._header()
        return made

    def _header(self) -> str:
        """What the groups cannot hold, as text for the file."""
        return json.dumps(
            {
                "num_rows": self.coreset.num_rows if self.has_coreset else None,
                "kl_estimate": self.kl_estimate,
                "settings": dict(self.settings),
                **{stage: vars(getattr(self, stage)) for stage in STAGES},
            }
        )

    @property
    def full_passes(self) -> float | None:
        """What all stages took, in log-likelihoods of all rows; None for methods without a coreset."""
        if not self.has_coreset:
            return None
        return sum(getattr(self, stage).num_evaluations for stage in STAGES) / self.coreset.num_rows

    def to_inferencedata(self) -> Any:
        """The same groups as an ``InferenceData`` of ArviZ before 1.0, which must be installed."""
        return to_inferencedata(self.tree)

    @property
    def samples_coreset(self) -> bool:
        """Whether draws come from the posterior of the coreset itself."""
        return self.has_coreset and bool(np.isfinite(self.kl_estimate))

    def save(self, path: Path | str) -> Path:
        """Write everything to one netCDF file."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.tree.to_netcdf(path, engine=ENGINE)
        return path

    def __repr__(self) -> str:
        draws = dict(self.posterior.sizes)
        shape = f"{draws.get('chain', 0)} chains x {draws.get('draw', 0)} draws"
        if not self.has_coreset:
            return f"Fit({self.settings['method']}, {shape})"
        law = self.settings.get("law", f"estimated KL {self.kl_estimate:.3g}")
        return (
            f"Fit({self.coreset.size} of {self.coreset.num_rows} rows, {shape}, {law}, training "
            f"{self.training.reason} after {self.training.num_steps} iterations, work of {self.full_passes:,.0f} "
            "passes over all rows)"
        )


def _tree_of(groups: Mapping[str, Any], **options: Any) -> xarray.DataTree:
    """Groups of arrays with leading chain and draw axes, in ArviZ's layout."""
    import arviz_base  # noqa: PLC0415 - takes a quarter of a second, during which ``fit`` compiles

    return arviz_base.from_dict(groups, **options)


def build_fit(
    *,
    pilot: Cost,
    training: Run,
    sampling: Run,
    history: Any,
    check: Cost,
    kl_estimate: float,
    law: Law,
    coreset: Coreset | None,
    settings: Mapping[str, Any],
    dims: Mapping[str, Any] | None,
    coords: Mapping[str, Any] | None,
    model: Model,
    data: Any,
    var_names: Sequence[str],
    observed: Mapping[str, np.ndarray],
    recipe: Mapping[str, Any],
) -> Fit:
    """Assemble the tree from two runs of the driver."""
    del law
    statistics = {name: np.swapaxes(np.asarray(value), 0, 1) for name, value in _statistics(history).items()}
    tree = _tree_of(
        {"posterior": shown_draws(model, history.position, var_names), "sample_stats": statistics},
        dims={name: list(value) for name, value in (dims or {}).items() if name in var_names},
        coords=dict(coords or {}),
    )
    positions = named_leaves(history.position, "theta")
    if model.constrain is not None or set(positions) != set(var_names):
        by_chain = {name: np.swapaxes(np.asarray(leaf), 0, 1) for name, leaf in positions.items()}
        tree[POSITIONS] = _tree_of({POSITIONS: by_chain})[POSITIONS]
    if coreset is not None:
        if observed:
            tree["observed_data"] = xarray.DataTree(_rows_dataset(observed, coreset.indices))
        tree["coreset"] = xarray.DataTree(_coreset_dataset(coreset))
    tree["training"] = xarray.DataTree(xarray.Dataset(_training_history(training)))
    costs = {
        "pilot": pilot,
        "training": Cost.of(training),
        "sampling": Cost.of(sampling),
        "check": check,
    }
    made = Fit(
        tree,
        coreset,
        **costs,
        kl_estimate=kl_estimate,
        settings=dict(settings),
        model=model,
        data=data,
        recipe=dict(recipe),
    )
    tree.attrs[ATTRIBUTE] = made._header()
    return made


NAMES_OF_STATISTICS = {"log_density": "lp", "num_steps": "n_steps"}
"""As PyMC calls them; other statistics keep their names."""


def _statistics(info: Any) -> dict[str, Any]:
    """Every statistic that has a value for each chain and draw."""
    statistics = {name: value for name, value in info._asdict().items() if name != "position"}
    return {NAMES_OF_STATISTICS.get(name, name): value for name, value in statistics.items() if np.ndim(value) == 2}


def _rows_dataset(values: Mapping[str, np.ndarray], indices: np.ndarray) -> xarray.Dataset:
    """Values of coreset rows, labelled by their row numbers in the data."""
    variables = {
        name: (["coreset_row", *(f"{name}_dim_{axis}" for axis in range(1, array.ndim))], array)
        for name, array in values.items()
    }
    return xarray.Dataset(variables, coords={"coreset_row": indices})


def _training_history(training: Run) -> dict[str, Any]:
    """Every scalar number that a training step reports, and when."""
    reported = {
        name: ("iteration", value)
        for name, value in training.history._asdict().items()
        if np.ndim(value) == 1 and np.issubdtype(value.dtype, np.floating)
    }
    return {"seconds": ("iteration", training.step_seconds), **reported}


def _coreset_dataset(coreset: Coreset) -> xarray.Dataset:
    variables: dict[str, Any] = {"row": ("coreset_row", coreset.indices), "weight": ("coreset_row", coreset.weights)}
    for name, values in coreset.columns.items():
        inner = [f"data.{name}_dim_{axis}" for axis in range(values.ndim - 1)]
        variables[f"data.{name}"] = (["coreset_row", *inner], values)
    return xarray.Dataset(variables)


def coreset_of(selected: SelectedRows, data: ArrayData) -> Coreset:
    """A coreset on the host, with the values of its rows."""
    rows = data.take(np.asarray(selected.indices))
    columns = {name: np.asarray(leaf) for name, leaf in named_leaves(rows, "data").items()}
    return Coreset(np.asarray(selected.indices), np.asarray(selected.weights), data.size, columns)


def observed_of(model: Model, rows: Any) -> dict[str, np.ndarray]:
    """The responses among the rows of a coreset, by the names under which the model observes them."""
    if callable(model.observed):
        return {name: np.asarray(values) for name, values in model.observed(rows).items()}
    return {name: np.asarray(rows[name]) for name in model.observed if rows[name] is not None}


@double_precision
def bound(model: Model, data: Any) -> Model:
    """The model once it has seen its data; most models need not."""
    if model.bind is None:
        return model
    require(
        data is not None,
        f"model {model.name!r}",
        got="no data",
        expected="data, which tell how many parameters there are",
        fix="Pass the data, too.",
    )
    return model.bind(to_batch(data))


def load(path: Path | str, *, model: Model | None = None, data: Any = None) -> Fit:
    """Read what :meth:`Fit.save` wrote; with the model and its data, predictions and LOO work as before."""
    try:
        with xarray.open_datatree(path, engine=ENGINE) as opened:
            tree = opened.load()
        header = json.loads(tree.attrs[ATTRIBUTE])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"load({str(path)!r})",
            got=f"{type(error).__name__}: {error}",
            expected="a file that Fit.save wrote",
            fix="Check the path.",
        ) from error
    coreset = _coreset_from(tree["coreset"].to_dataset(), header["num_rows"]) if "coreset" in tree else None
    costs = {stage: Cost(**header[stage]) for stage in STAGES}
    if model is not None:
        data = model.data if data is None else data
        model = bound(model, data)
    return Fit(
        tree,
        coreset,
        **costs,
        kl_estimate=header["kl_estimate"],
        settings=header["settings"],
        model=model,
        data=data,
        recipe=None,
    )


def _coreset_from(group: xarray.Dataset, num_rows: int) -> Coreset:
    columns = {
        str(name).removeprefix("data."): group[name].to_numpy()
        for name in group.data_vars
        if str(name).startswith("data.")
    }
    return Coreset(group["row"].to_numpy(), group["weight"].to_numpy(), num_rows, columns)
