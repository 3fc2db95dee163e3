"""How much each contestant does: enough for the comparison, few enough for an afternoon.

Ours makes as many draws as are asked for. A sampler on all rows makes fewer where a draw takes long, and its time is
scaled up to :data:`EFFECTIVE_DRAWS`; above :data:`MANY_ROWS` it is also given what it would have to learn.
"""

from __future__ import annotations

from dataclasses import dataclass

EFFECTIVE_DRAWS = 10_000
MANY_ROWS = 500_000
FEWEST_FOR_ESS = 400
"""With fewer draws an effective sample size is noise: each draw then counts as one."""


@dataclass(frozen=True)
class Effort:
    """Numbers of draws."""

    kept: int = 10_000
    """Draws of a coreset posterior, over four chains; each costs no pass over the rows."""
    full_data_evaluations: float = 5e8
    """Log-likelihoods of single rows in importance weights, about; bounds the draws of the Laplace approximation."""
    nuts: tuple[tuple[float, int, int], ...] = ((5e5, 1_000, 1_000), (8e6, 300, 300), (2e7, 5, 200), (6e7, 5, 30))
    """Up to so many rows times parameters, steps of tuning and draws of each of two chains."""
    nuts_beyond: tuple[int, int] = (5, 10)
    slow_nuts: tuple[tuple[float, int, int], ...] = ((5e5, 500, 500),)
    slow_nuts_beyond: tuple[int, int] = (100, 200)
    """The same for PyMC's own gradients and those of Numba, which take several times as long."""
    variational_steps: int = 5_000
    subsampled: tuple[int, int] = (500, 1_000)
    """Tuning and draws of HMC on subsamples."""
    share_of_paper: float = 1.0
    """Share of the published number of training steps."""

    def nuts_steps(self, rows: int, dimension: int) -> tuple[int, int]:
        """Tuning and draws for a problem of so many rows and parameters."""
        return _steps(self.nuts, self.nuts_beyond, rows * dimension)

    def pymc_steps(self, rows: int, dimension: int) -> tuple[int, int]:
        """The same for PyMC's own gradients and those of Numba."""
        return _steps(self.slow_nuts, self.slow_nuts_beyond, rows * dimension)

    def weighted_draws(self, rows: int) -> int:
        """Draws of the Laplace approximation, over four chains."""
        return int(min(max(self.full_data_evaluations / rows, 100), self.kept))


def _steps(tiers: tuple[tuple[float, int, int], ...], beyond: tuple[int, int], size: int) -> tuple[int, int]:
    return next(((tune, draws) for most, tune, draws in tiers if size <= most), beyond)


FULL = Effort()
QUICK = Effort(
    kept=1_000,
    full_data_evaluations=2e6,
    nuts=((1e12, 200, 250),),
    slow_nuts=((1e12, 200, 250),),
    subsampled=(200, 250),
    share_of_paper=0.01,
    variational_steps=500,
)
