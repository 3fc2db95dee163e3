"""Coreset weights by least squares on a window of draws: the paper's objective in a few solves.

Every draw theta_j gives a linear equation for the weights, sum_m w_m l_m(theta_j) = sum_n l_n(theta_j), both sides
centred over draws, which an exact coreset satisfies. Coreset MCMC takes one small gradient step for each few of them
and forgets them. Here a window of J draws is kept, and with centred log-likelihoods L (J, M) of the coreset rows and
centred sums T (J,) over all rows

    w  <-  argmin over w >= 0 of  |L w - T|^2 / J + damping |w - best|^2.

Its gradient without the damping is the estimate (4) of the gradient of KL(pi_w || pi), so the fixed points are the
same; only log-likelihoods are needed. Half the variance of T - L w over *fresh* draws of pi_w estimates the KL without
knowing the posterior. It is the merit function of a Levenberg-Marquardt iteration: weights that bring it down are
kept and the damping falls, otherwise the best weights so far are tried again with more damping, on more draws. It
says when to stop, too.

A differentiable model gets a hot start (:mod:`coreset_mcmc.methods.least_squares.start`). The search for the mode of
the full posterior comes first; at the mode, rows are chosen by how much they matter, unless the user has chosen them;
the first window is drawn from the Laplace approximation, widened, and one solve gives the first weights to try. Models
without gradients, and those without a mode, get a cold start: they keep the rows they were given, and their chains
begin under the initial weights. The first two rounds only shape the kernel and bring the chains to where their target
is; the weights stay as they are until the third.

A hot start also mends its choice of rows: after each round that did better, rows at weight zero make room for those
that the window misses (:mod:`coreset_mcmc.methods.least_squares.exchange`), unless the estimated KL is low enough
already.

With many rows the sums of a window come from second-order control variates
(:mod:`coreset_mcmc.methods.least_squares.taylor`) wherever their standard error is small beside the estimated KL. What
is left of passes over all rows is then a few Newton steps and one for scores, whatever the number of draws.
Training is Python between such passes and small compiled programs, so the rows may be anywhere.

From a hot start chains move by Hamiltonian trajectories that are shaped by the Laplace approximation, then by the best
window, and tune their step size in every round (:mod:`coreset_mcmc.methods.tuned_sampling`). Where they are not
accepted, from a cold start, and in models in Python, chains move by slice sampling, which needs no step size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.blas import small_algebra
from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.randomness import fold_in
from coreset_mcmc.core.trees import dimension
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Trained, discrete_parts
from coreset_mcmc.methods.draws import require_equal_shares
from coreset_mcmc.methods.host_sampling import is_python, rows_behind_sums
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.least_squares.ahead import programs_ahead
from coreset_mcmc.methods.least_squares.amounts import draws_wanted, sample_wanted
from coreset_mcmc.methods.least_squares.conditional import conditional_step, pilot_step
from coreset_mcmc.methods.least_squares.curvature import MOST_KNOWN
from coreset_mcmc.methods.least_squares.drawing import kernel_or_slices
from coreset_mcmc.methods.least_squares.equations import Window, alternate_draws
from coreset_mcmc.methods.least_squares.exchange import exchange_step
from coreset_mcmc.methods.least_squares.expansion import unknown_expansion
from coreset_mcmc.methods.least_squares.judgement import FIRST_DAMPING, NUM_SHAPING_ROUNDS
from coreset_mcmc.methods.least_squares.rounds import MOST_GUARD_STEPS, Rounds
from coreset_mcmc.methods.least_squares.sampler import by_trajectories, sampler_after
from coreset_mcmc.methods.least_squares.start import TOLERANCE, ModeStart
from coreset_mcmc.methods.least_squares.state import (
    LeastSquaresInfo,
    LeastSquaresState,
    Phase,
    Stepped,
    known_expansion,
)
from coreset_mcmc.methods.sampling import frozen_problem, sample_coreset
from coreset_mcmc.methods.sizes import (
    FEWEST_ROWS,
    HOPELESS,
    default_rows,
    default_rows_beside_term,
    rows_called_for,
    rows_serve_alone,
    rows_to_start_from,
)
from coreset_mcmc.methods.tuned_sampling import TunedSampling
from coreset_mcmc.methods.with_kernel import MovesByKernel
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.by_passes import flat_position
from coreset_mcmc.posterior.gaussian_term import no_term
from coreset_mcmc.posterior.newton import NewtonSearch
from coreset_mcmc.posterior.problem import Problem


@pytree
@dataclass(frozen=True)
class LeastSquares(MovesByKernel):
    """Train coreset weights by damped non-negative least squares on windows of draws; nothing to tune.

    A round costs J draws of the kernel, and J passes over the data or over a sample of them.

    Args:
        kernel: moves each chain. ``None`` is Hamiltonian trajectories from a hot start on, and otherwise a hit-and-run
            slice kernel, which moves whole numbers by steps; all are shaped by the windows themselves.
        num_draws: J, draws in a window, over all chains. ``None`` is 400, or with many parameters as many as a
            quadratic in them has coefficients or the coreset has rows, whichever is less, up to 800. Beside a Gaussian
            term 800, or with many rows or parameters up to 2 400.
        num_chains: chains among which they are divided.
        num_rounds: most rounds, besides the search for the mode.
        tolerance: stop when the estimated KL falls below this.
        hot_start: begin at the Laplace approximation if the model has gradients.
        discard: share of each chain's steps in a round that is thrown away, because the weights have just moved.
        max_newton_steps: after so many without a mode, go on without.
        subsample_size: rows behind control variates, which a hot start with four times as many rows or more uses
            instead of all of them where their error allows; ``None`` for all rows always. Beside a Gaussian term with
            200 parameters or more there are four times as many.
        gaussian_term: whether a Gaussian term carries the gradient and the Hessian of all rows, which the search for
            the mode finds, so that the rows of the coreset explain only what these leave. ``None`` is "where few rows
            stand against many parameters, and a mode is found". It needs a hot start.
        chooses_rows: whether a hot start chooses the rows of the coreset by their influence, in place of those of the
            problem. ``fit`` sets it to False for rows that its user has selected.
        room: rows that programs are made for; a smaller coreset is filled up by rows of weight zero.
    """

    kernel: Kernel | None = None
    num_draws: int | None = static(default=None)
    num_chains: int = static(default=4)
    num_rounds: int = 20
    tolerance: float = 0.01
    hot_start: bool = static(default=True)
    discard: float = static(default=0.2)
    max_newton_steps: int = 50
    subsample_size: int | None = static(default=16_384)
    gaussian_term: bool | None = static(default=None)
    chooses_rows: bool = static(default=True)
    room: int = static(default=0)

    name = "least-squares"
    takes_few_steps = True
    on_host = True
    works_by_passes = True
    needs_pilot = False

    def __post_init__(self) -> None:
        require_count("num_chains", self.num_chains, at_least=1, fix="Four chains are a good choice.")
        if self.num_draws is not None:
            require_count("num_draws", self.num_draws, at_least=4, fix="A few hundred are a good choice.")
            require_equal_shares(self.num_draws, self.num_chains)
        require(
            0 <= self.discard < 1, "discard", got=self.discard, expected="a share from 0 to below 1", fix="Use 0.2."
        )
        require_positive("tolerance", self.tolerance)
        if self.subsample_size is not None:
            require_count("subsample_size", self.subsample_size, at_least=2, fix="Use None for all rows.")
        for name in ("num_rounds", "max_newton_steps"):
            if isinstance(getattr(self, name), int):
                require_count(name, getattr(self, name), at_least=1, fix="Leave it out for the default.")

    @property
    def max_steps(self) -> int:
        return 3 + 3 * self.num_rounds + NUM_SHAPING_ROUNDS + 2 * self.max_newton_steps + MOST_GUARD_STEPS

    @property
    def mode_search(self) -> NewtonSearch:
        return NewtonSearch(max_iterations=self.max_newton_steps, tolerance=TOLERANCE)

    def window_size(self, problem: Problem) -> int:
        """J: enough equations for what they have to tell."""
        if self.num_draws is not None:
            return self.num_draws
        wanted = draws_wanted(dimension(problem.position), problem.program_size, has_term=self.has_term(problem))
        return self.num_chains * math.ceil(wanted / self.num_chains)

    def with_room(self, coreset_size: int) -> LeastSquares:
        return replace(self, room=coreset_size)

    def check(self, problem: Problem) -> None:
        require(
            not self.gaussian_term or self.has_term(problem),
            "gaussian_term",
            got="True, and a model without gradients, hot_start=False, or a kernel that samples rows and weights",
            expected="a model with two derivatives, a hot start, and a kernel that samples a log-density",
            fix="Leave gaussian_term out.",
        )
        target = problem.target(problem.initial_weights)
        kernel_or_slices(self.kernel, np.eye(dimension(problem.position)), problem.position).check(
            problem.position, target
        )

    def adapted(self, problem: Problem, *, keeps_rows: bool) -> LeastSquares:
        method = replace(self, subsample_size=rows_behind_sums(problem.model, self.subsample_size))
        return replace(method, chooses_rows=False) if keeps_rows else method

    def otherwise(self, model: Model, position: Position, coreset_size: int, *, has_term: bool) -> LeastSquares | None:
        """Without the term, unless the rows are hopelessly few for that; or with it, if the model allows one."""
        if self.gaussian_term is not None:
            return None
        if has_term:
            return replace(self, gaussian_term=False) if self._has_another_way(position, coreset_size) else None
        is_possible = self._may_start_hot(model, position) and (self.kernel is None or self.kernel.reads_log_density)
        return replace(self, gaussian_term=True) if is_possible else None

    def _has_another_way(self, position: Position, coreset_size: int) -> bool:
        """Whether as many rows may serve without a Gaussian term, and nobody has asked for one."""
        return self.gaussian_term is None and coreset_size >= HOPELESS * rows_called_for(dimension(position))

    def in_words(self, problem: Problem, coreset: SelectedRows) -> dict[str, str]:
        return {"gaussian_term": f"{'no' if coreset.term is None else 'yes'}: {self._why(problem, coreset)}"}

    def _why(self, problem: Problem, coreset: SelectedRows) -> str:
        num_coordinates = dimension(problem.position)
        called_for = f"the {rows_called_for(num_coordinates):,} that {num_coordinates} parameters call for"
        if not self.starts_hot(problem):
            return "the model has no gradients, or was told to start without them"
        if self.kernel is not None and not self.kernel.reads_log_density:
            return "the kernel samples rows and weights"
        if self.has_term(problem) and coreset.term is None:
            return "no mode of the full posterior was found"
        if self.gaussian_term is not None:
            return "as asked for"
        if coreset.term is not None:
            return f"{problem.coreset_size:,} rows are fewer than {called_for}"
        return f"{problem.coreset_size:,} rows are no fewer than {called_for}, or all there are"

    def default_rows(self, model: Model, position: Position) -> int:
        num_coordinates = dimension(position)
        may_have_term = self.gaussian_term is not False and self._may_start_hot(model, position)
        if not may_have_term or (self.gaussian_term is None and rows_serve_alone(num_coordinates, model.log_concave)):
            return default_rows(num_coordinates)
        return default_rows_beside_term(num_coordinates)

    def fewest_rows(self, model: Model, position: Position) -> int:
        if self.gaussian_term is False or not self._may_start_hot(model, position):
            return rows_to_start_from(dimension(position))
        return FEWEST_ROWS

    def starts_hot(self, problem: Problem) -> bool:
        return self._may_start_hot(problem.model, problem.position)

    def _may_start_hot(self, model: Model, position: Position) -> bool:
        return self.hot_start and model.differentiable and not discrete_parts(position)

    def samples_rows(self, problem: Problem) -> bool:
        """Whether there are so many rows that control variates pay."""
        return self.starts_hot(problem) and self._mode_start(problem).samples_rows(problem)

    def has_term(self, problem: Problem) -> bool:
        """Whether a Gaussian term is tried: where there are fewer rows than parameters call for."""
        if not self.starts_hot(problem) or not (self.kernel is None or self.kernel.reads_log_density):
            return False
        if self.gaussian_term is not None:
            return self.gaussian_term
        called_for = rows_called_for(dimension(problem.position))
        return problem.coreset_size < min(called_for, problem.data.size)

    def first_phase(self, problem: Problem) -> int:
        """Where training begins; a hot start goes on cold only if it finds no mode or trajectories fail."""
        if not self.starts_hot(problem):
            return Phase.COLD_ROUNDS
        return Phase.SAMPLE_MODE if self._mode_start(problem).begins_on_sample(problem) else Phase.MODE

    def samples_by_trajectories(self, problem: Problem) -> bool:
        """Whether the model can be sampled with gradients, and nobody asked for another kernel."""
        is_smooth = problem.model.differentiable and not discrete_parts(problem.position)
        return self.kernel is None and is_smooth and not is_python(problem.model)

    def init(self, key: Key, problem: Problem) -> LeastSquaresState:
        weights = np.maximum(np.asarray(problem.initial_weights), 0.0)
        positions = jax.tree.map(lambda leaf: np.asarray(leaf)[: self.num_chains], problem.initial_positions)
        num_draws, starts_hot = self.window_size(problem), self.starts_hot(problem)
        return LeastSquaresState(
            phase=np.asarray(self.first_phase(problem), np.int32),
            seed=np.asarray(jax.random.key_data(key)),
            num_drawn=np.zeros((), np.int32),
            search=self._mode_start(problem).search.begin(flat_position(problem.position)) if starts_hot else None,
            taylor=self._mode_start(problem).no_taylor(problem) if self.samples_rows(problem) else None,
            width=np.asarray(1.0),
            is_held=np.zeros(dimension(problem.position), bool),
            expansion=unknown_expansion(dimension(problem.position)) if self.has_term(problem) else None,
            indices=np.asarray(problem.indices, np.int64),
            rows=jax.tree.map(np.asarray, problem.rows),
            is_guard=np.zeros(problem.coreset_size, bool),
            is_whole=np.zeros(problem.coreset_size, bool),
            known=np.zeros((MOST_KNOWN if self.has_term(problem) else 0, dimension(problem.position))),
            weights=weights,
            slope=np.zeros(dimension(problem.position)),
            best_weights=weights,
            best_slope=np.zeros(dimension(problem.position)),
            best_estimate=np.asarray(np.inf),
            best_positions=positions,
            best_window=Window(np.zeros((num_draws, problem.coreset_size)), np.zeros(num_draws)),
            best_draws=jax.tree.map(lambda leaf: np.zeros((num_draws, *leaf.shape[1:]), leaf.dtype), positions),
            scale=np.eye(dimension(problem.position)),
            damping=np.asarray(FIRST_DAMPING),
            round=np.zeros((), np.int32),
            num_poor=np.zeros((), np.int32),
            is_first=np.asarray(False),
            done=np.asarray(False),
        )

    def blank_info(self, problem: Problem) -> LeastSquaresInfo:
        nan, zero = np.asarray(np.nan), np.zeros((), np.int64)
        return LeastSquaresInfo(nan, nan, nan, nan, nan, zero, np.zeros((), np.int32))

    def step(self, key: Key, state: LeastSquaresState, problem: Problem) -> Stepped:
        """One step; a mode that is known from an earlier fit saves steps and changes no random number."""
        problem = replace(problem, indices=state.indices, rows=state.rows)
        with small_algebra(max(problem.coreset_size, dimension(problem.position))):
            return self._step(key, state, problem)

    def _step(self, key: Key, state: LeastSquaresState, problem: Problem) -> Stepped:
        phase, start = int(state.phase), self._mode_start(problem)
        if phase == Phase.SAMPLE_MODE:
            return start.sample_mode_step(state, problem)
        if phase == Phase.MODE:
            return start.newton_step(state, problem)
        if phase == Phase.CONDITIONAL:
            return conditional_step(state, problem, start.search, self.max_newton_steps)
        base = jax.random.wrap_key_data(jnp.asarray(state.seed), impl=jax.random.key_impl(key))
        moved, info = self._drawing_step(fold_in(base, int(state.num_drawn)), state, problem)
        return moved._replace(num_drawn=np.asarray(int(state.num_drawn) + 1, np.int32)), info

    def _drawing_step(self, key: Key, state: LeastSquaresState, problem: Problem) -> Stepped:
        if int(state.phase) == Phase.PILOT:
            return pilot_step(key, state, problem, self._rounds(problem).drawing(Phase.ROUNDS))
        if int(state.phase) == Phase.SCORES:
            return self._mode_start(problem).scores_step(key, state, problem)
        if int(state.phase) == Phase.EXCHANGE:
            is_second = alternate_draws(self.window_size(problem), self.num_chains)
            return exchange_step(key, state, problem, is_second)
        return self._rounds(problem).step(key, state, problem)

    def _rounds(self, problem: Problem) -> Rounds:
        return Rounds(
            self.kernel,
            self.window_size(problem),
            self.num_chains,
            self.discard,
            self.num_rounds,
            self.tolerance,
            self.chooses_rows,
            self._mode_start(problem).widening(dimension(problem.position)),
            self.has_term(problem) and self._has_another_way(problem.position, problem.coreset_size),
        )

    def phase_of(self, state: LeastSquaresState) -> int:
        return int(state.phase)

    def ahead(self, problem: Problem) -> Iterator[tuple[int | None, Callable[[], None]]]:
        yield from programs_ahead(self, self._mode_start(problem), self._rounds(problem), problem)

    def describe(self, info: LeastSquaresInfo) -> str:
        if math.isfinite(info.best_estimate[-1]):
            return f"estimated KL {info.best_estimate[-1]:.3g}"
        is_searching = math.isfinite(info.newton_decrement[-1])
        return f"{info.newton_decrement[-1]:.2g} sd from the mode" if is_searching else "looking for the posterior"

    def finish(self, state: LeastSquaresState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        problem = replace(problem, indices=state.indices, rows=state.rows)
        problem.passes.remember(state.indices, state.rows)
        coreset = SelectedRows(np.asarray(state.indices), np.asarray(state.best_weights))
        expansion = known_expansion(state)
        if expansion is not None:
            term = expansion.term(problem, state.rows, state.best_weights, state.best_slope)
            coreset = coreset._replace(term=term)
        require(
            coreset.term is None or kernel is None or kernel.reads_log_density,
            "kernel",
            got=f"{type(kernel).__name__}, which samples rows and weights, and a coreset with a Gaussian term",
            expected="a kernel that samples a log-density",
            fix="Pass method=cm.LeastSquares(gaussian_term=False), or another kernel.",
        )
        if kernel is None and self.samples_by_trajectories(problem):
            return by_trajectories(problem, coreset, state.best_positions, sampler_after(state), num_chains)
        if kernel is None and (sampler := self._rounds(problem).sampler_in_python(state, problem)) is not None:
            frozen = frozen_problem(problem, coreset, state.best_positions, num_chains)
            return Trained(sampler, frozen, coreset, Law.CORESET)
        chosen = kernel or kernel_or_slices(self.kernel, jnp.asarray(state.scale), problem.position)
        return sample_coreset(problem, coreset, state.best_positions, chosen, num_chains)

    def expected_sampler(self, problem: Problem, num_chains: int) -> Trained | None:
        """As :meth:`finish` hands over in all but its numbers, unless it shares the programs of windows."""
        if not self.samples_by_trajectories(problem) or (num_chains == self.num_chains and self.starts_hot(problem)):
            return None
        term = no_term(dimension(problem.position)) if self.has_term(problem) else None
        coreset = SelectedRows(np.asarray(problem.indices), np.asarray(problem.initial_weights), term)
        sampler = TunedSampling(jax.device_put(np.eye(dimension(problem.position))))
        return by_trajectories(problem, coreset, problem.initial_positions, sampler, num_chains)

    def _mode_start(self, problem: Problem) -> ModeStart:
        has_term = self.has_term(problem)
        size = sample_wanted(self.subsample_size, problem.data.size, dimension(problem.position), has_term=has_term)
        return ModeStart(self.num_chains, self.max_newton_steps, size, self.chooses_rows, has_term)
