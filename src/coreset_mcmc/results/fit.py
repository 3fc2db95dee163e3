"""What a fit leaves behind: the coreset, the draws, and an account of the work.

Everything lives in one ``xarray.DataTree`` in ArviZ's layout, so one netCDF file holds it all and any tool that reads
ArviZ files can open it. The methods here are doors; the work is done in the other files of this room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import jax

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.plain import strict_json
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.data.source import Source
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.methods.law import Law
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.distance import Surveyed
from coreset_mcmc.results.coreset import Coreset
from coreset_mcmc.results.full_posterior import FullDraws, exact_draws, reweighted
from coreset_mcmc.results.inferencedata import to_inferencedata
from coreset_mcmc.results.loo import loo
from coreset_mcmc.results.notebook import fit_display
from coreset_mcmc.results.predictive import QUANTILES, predict
from coreset_mcmc.results.skeleton import skeleton_of
from coreset_mcmc.results.tree import (
    ATTRIBUTE,
    CORESET,
    POSITIONS,
    POSTERIOR,
    coreset_from,
    with_other_draws,
    write_tree,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray
    from arviz_stats.utils import ELPDData

    from coreset_mcmc.results.effects import Effect
    from coreset_mcmc.verdict import Trust


@dataclass(frozen=True)
class Fit:
    """A trained coreset and draws from its posterior."""

    tree: xarray.DataTree
    """Groups ``posterior``, ``sample_stats``, ``observed_data`` (of the coreset), ``coreset`` and ``training``; and
    ``unconstrained_posterior`` if the chains moved on another scale. ArviZ functions take it as it is.
    """
    law: Law
    """What the draws are draws of."""
    kl_estimate: float
    """Estimated KL(coreset posterior || full posterior) in nats, from draws that training has not seen.

    Half the variance over draws of the difference of the two log-likelihoods, and -log(1 - s) if the draws leave out a
    share s of the mass in modes that were found. Reliable when small; nothing sees modes that were never found.
    Infinite or NaN if some draws are impossible under rows that are not in the coreset; NaN for draws of anything else
    than a coreset posterior.
    """
    pilot: Cost
    training: Cost
    sampling: Cost
    check: Cost
    """The final estimate of the KL."""
    settings: Mapping[str, Any]
    position_names: Any = field(default=None, repr=False)
    """The model's pytree with the name of a variable in place of each leaf; None if a file could not hold it."""
    model: Model | None = field(default=None, repr=False)
    """What was fitted, bound to its data; None after :func:`load` unless given there."""
    data: Any = field(default=None, repr=False)
    """The rows it was fitted to, as the user passed them."""
    rows: Rows | None = field(default=None, repr=False)
    """The same as they were passed over, with what is known about them; None after :func:`load`."""
    recipe: Mapping[str, Any] | None = field(default=None, repr=False)
    """Options of ``fit`` that make another one like it with another seed; None after :func:`load`."""
    checked: Surveyed | None = field(default=None, repr=False)
    """Both posteriors at the draws of the final check; None after :func:`load`, or if there was none."""

    def __post_init__(self) -> None:
        """The tree always carries what its groups cannot hold, so that any way of saving it saves all."""
        content = {
            "law": self.law,
            "kl_estimate": self.kl_estimate,
            "costs": self.costs,
            "settings": self.settings,
            "numbers": [name for name, value in self.settings.items() if isinstance(value, float)],
            "position": skeleton_of(self.position_names),
        }
        self.tree.attrs[ATTRIBUTE] = strict_json(content)

    @property
    def posterior(self) -> xarray.Dataset:
        """Draws of each variable, (chain, draw, ...), on the user's scale: the group ``posterior`` of the tree."""
        return self.tree[POSTERIOR].to_dataset()

    @property
    def own_rows(self) -> Any:
        """What it was fitted to, in the form in which nothing has to be read or checked again."""
        return self.data if self.rows is None else self.rows

    @property
    def has_coreset(self) -> bool:
        """Whether the method has a coreset; subsampling MCMC and the full-data references have none."""
        return CORESET in self.tree.children

    @property
    def has_term(self) -> bool:
        """Whether a Gaussian term belongs to the coreset."""
        return self.has_coreset and self.coreset.term is not None

    @property
    def coreset(self) -> Coreset:
        """Rows and weights."""
        require(
            self.has_coreset,
            "fit.coreset",
            got=f"a fit by {self.settings['method']}, which has no coreset",
            expected="a coreset method",
            fix="Ask fit.has_coreset first.",
        )
        return coreset_from(self.tree.children[CORESET])

    @property
    def samples_coreset(self) -> bool:
        """Whether draws come from the posterior of the coreset itself."""
        return self.law is Law.CORESET

    @property
    def costs(self) -> dict[str, Cost]:
        """What each stage took, in their order."""
        return {"pilot": self.pilot, "training": self.training, "sampling": self.sampling, "check": self.check}

    @property
    def num_evaluations(self) -> int:
        """Log-likelihoods of single rows in all stages."""
        return sum(cost.num_evaluations for cost in self.costs.values())

    @property
    def full_passes(self) -> float | None:
        """What all stages took, in log-likelihoods of all rows; None for methods without a coreset."""
        return self.num_evaluations / self.coreset.num_rows if self.has_coreset else None

    @property
    def is_interrupted(self) -> bool:
        return "interrupted" in (self.training.reason, self.sampling.reason)

    def summary(self, **options: Any) -> pd.DataFrame:
        """ArviZ's table: mean, sd, interval, ESS and R-hat of each parameter.

        Its numbers are not rounded; printed, they have digits by the standard deviation of each parameter. Options are
        those of ``arviz_stats.summary``, ``round_to`` among them.
        """
        from coreset_mcmc.results.summary_table import summary_of  # noqa: PLC0415 - imports pandas

        return summary_of(self.tree, **options)

    def positions(self) -> Position:
        """Draws on the scale on which the chains moved: the model's pytree with leading chain and draw axes."""
        require(
            self.position_names is not None,
            "fit.positions",
            got="a file that does not tell how the model arranges its parameters",
            expected="a model with an initial_position",
            fix="Pass it on: cm.load(path, model=..., data=...).",
        )
        group = self.tree[POSITIONS if POSITIONS in self.tree.children else POSTERIOR]
        return jax.tree.map(lambda name: group[name].to_numpy(), self.position_names)

    @overload
    def predict(
        self,
        data: Any = None,
        *,
        draws: int = ...,
        quantiles: Sequence[float] | None = ...,
        var_names: Sequence[str] | str | None = ...,
        random_seed: int = ...,
        to: None = None,
        progressbar: bool = ...,
    ) -> xarray.DataTree: ...

    @overload
    def predict(
        self,
        data: Any = None,
        *,
        draws: int = ...,
        quantiles: Sequence[float] = ...,
        var_names: Sequence[str] | str | None = ...,
        random_seed: int = ...,
        to: Path | str,
        progressbar: bool = ...,
    ) -> Path: ...

    def predict(
        self,
        data: Any = None,
        *,
        draws: int = 200,
        quantiles: Sequence[float] | None = QUANTILES,
        var_names: Sequence[str] | str | None = None,
        random_seed: int = 0,
        to: Path | str | None = None,
        progressbar: bool = True,
    ) -> xarray.DataTree | Path:
        """Responses of rows, the fitted ones by default: a tree of what they are on average and of new ones.

        The group ``expected`` has the expected response, for models that know it, whose spread is what is not known
        about the parameters; ``posterior_predictive`` has new responses, which scatter around it. A model that was made
        by a formula takes a table with the columns of the formula; the response may be left out.

        Rows go through in blocks. By default each row gets its mean, standard deviation and quantiles over draws;
        ``quantiles=None`` keeps the draws themselves, ``draws`` times as many numbers as rows.

        Args:
            data: rows as for ``fit``, or a table with the columns of a formula; the response may be left out.
            draws: how many evenly spaced draws of the posterior are used.
            quantiles: which ones; the median and an interval of 89 % by default.
            var_names: which responses, or deterministic quantities with a value for each row.
            to: a Parquet file, to which summaries are written as they come, with columns ``row``, ``<name>_mean``,
                ``<name>_sd`` and ``<name>_q0.5``, the same with ``_expected`` after the name; its path is returned.
                For more rows than memory holds.
            progressbar: show how far a pass is that takes longer than two seconds.
        """
        return predict(
            *self._with_rows(data),
            draws=draws,
            quantiles=quantiles,
            var_names=var_names,
            random_seed=random_seed,
            to=to,
            progressbar=progressbar,
            engine=self.rows.engine if self.rows is not None and isinstance(data, Source) else None,
        )

    def effect(self, column: str, **options: Any) -> Effect:
        """What a column does to the expected response on average: see :func:`coreset_mcmc.results.effects.effect`."""
        from coreset_mcmc.results.effects import effect  # noqa: PLC0415 - imports pandas

        engine = self.rows.engine if self.rows is not None else None
        return effect(model_of(self), self.positions(), column, **{"engine": engine, "progressbar": True, **options})

    def loo(
        self,
        data: Any = None,
        *,
        draws: int | None = 1000,
        reweight: bool = True,
        to: Path | str | None = None,
        progressbar: bool = True,
    ) -> ELPDData:
        """Leave-one-out cross-validation over all rows, in bounded memory; compare models with ``arviz_stats.compare``.

        Args:
            data: the rows that were fitted, if the fit does not hold them.
            draws: how many evenly spaced draws are used; all share two passes over the rows.
            reweight: correct for draws that come from the coreset posterior instead of the full one. The k-hat of
                this correction is ``influence_pareto_k`` of the result.
            to: a Parquet file, to which the values of each row are written as they come, with columns ``row``,
                ``elpd_i`` and ``pareto_k``; the result then holds totals only.
            progressbar: show how far a pass is that takes longer than two seconds.
        """
        coreset = self.coreset.selected if self.samples_coreset else None
        return loo(
            *self._with_rows(data),
            coreset=coreset,
            draws=draws,
            reweight=reweight,
            to=to,
            progressbar=progressbar,
        )

    def reweight(self, *, draws: int | None = None, random_seed: int = 0, progressbar: bool = True) -> Fit:
        """Draws of the full posterior: those of the coreset, resampled by Pareto-smoothed importance weights.

        All share one pass over the rows. The k-hat of the weights, ``fit.settings["pareto_k"]``, says whether to trust
        them, and a warning says so where not. Draws repeat, so ArviZ overstates their effective sample size;
        ``fit.settings["effective_draws"]`` is that of the weights.

        Args:
            draws: how many evenly spaced draws are used; all by default.
        """
        model, positions, coreset = self._for_all_rows("reweight")
        made = reweighted(
            model, positions, self.own_rows, coreset, draws=draws, seed=random_seed, progressbar=progressbar
        )
        return self._with_draws(made)

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

        Right in the long run whatever the coreset; the better it is, the more proposals pass. The chains share one pass
        over the rows for each draw.

        Args:
            num_inner: steps on the coreset between decisions; twice the number of parameters by default.
        """
        model, positions, coreset = self._for_all_rows("exact")
        made = exact_draws(
            model,
            positions,
            self.own_rows,
            coreset,
            draws=draws,
            tune=tune,
            chains=chains,
            num_inner=num_inner,
            seed=random_seed,
            progressbar=progressbar,
        )
        return self._with_draws(made)

    def trust(self, **options: Any) -> Trust:
        """Whether these draws can be trusted, in words and numbers: see :func:`coreset_mcmc.trust`."""
        from coreset_mcmc.verdict import trust  # noqa: PLC0415 - it fits again, so it comes after ``fit``

        return trust(self, **options)

    def with_settings(self, settings: Mapping[str, Any]) -> Fit:
        """The same fit with more entries in its settings, in its file as well."""
        return replace(self, tree=self.tree.copy(), settings={**self.settings, **settings})

    def to_inferencedata(self) -> Any:
        """The same groups as an ``InferenceData`` of ArviZ before 1.0, which must be installed."""
        return to_inferencedata(self.tree)

    def save(self, path: Path | str) -> Path:
        """Write everything to one netCDF file."""
        return write_tree(self.tree, path)

    def __repr__(self) -> str:
        sizes = self.posterior.sizes
        shape = f"{sizes.get('chain', 0)} chains x {sizes.get('draw', 0)} draws"
        if not self.has_coreset:
            return f"Fit({self.settings['method']}, {shape})"
        law = f"estimated KL {self.kl_estimate:.3g}" if self.samples_coreset else self.law.value
        return (
            f"Fit({self.coreset.size} of {self.coreset.num_rows} rows, {shape}, {law}, training "
            f"{self.training.reason} after {self.training.num_steps} iterations, work of {self.full_passes:,.0f} "
            "passes over all rows)"
        )

    def _repr_html_(self) -> str:
        return fit_display(self)

    def _with_rows(self, data: Any) -> tuple[Model, Position, Any]:
        """Model, draws and rows, the fitted ones by default, for what has an output for each row."""
        return model_of(self), self.positions(), self.own_rows if data is None else data

    def _for_all_rows(self, subject: str) -> tuple[Model, Position, SelectedRows]:
        """Model, draws and coreset, for what goes from the coreset posterior to the full one."""
        is_known = self.law is not Law.APPROXIMATE
        require(
            self.samples_coreset,
            f"fit.{subject}",
            got=f"a fit by {self.settings['method']}, whose draws have the law: {self.law.value}",
            expected="draws of a coreset posterior",
            fix="They need no correction." if is_known else "Nothing here can correct them; try method=cm.NUTS().",
        )
        return model_of(self), self.positions(), self.coreset.selected

    def _with_draws(self, made: FullDraws) -> Fit:
        """The same fit with draws of the full posterior, so there is no KL."""
        tree = with_other_draws(self.tree, model_of(self), made.positions, made.statistics)
        settings, sampling = {**self.settings, **made.settings}, made.cost or self.sampling
        corrected = replace(self, tree=tree, law=made.law, settings=settings, sampling=sampling)
        return replace(corrected, kl_estimate=float("nan"), checked=None)


def model_of(fit: Fit) -> Model:
    """The model that was fitted; one that a file cannot hold must have been passed on."""
    if fit.model is None:
        raise InputError(
            "fit.model",
            got="nothing: the fit was read from a file",
            expected="the model that was fitted",
            fix="Pass it on: cm.load(path, model=..., data=...).",
        )
    return fit.model
