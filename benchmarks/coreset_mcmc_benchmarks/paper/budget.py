"""How long the experiments run: as in the paper, or just long enough to see that everything works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Numbers of steps and rows."""

    share: float = 1.0
    """Share of the paper's training steps."""
    kept: int = 10_000
    """Draws kept from each run, over all chains."""
    max_rows: int | None = None
    """Data are thinned to this many rows."""
    reference_draws: int = 12_000
    """Draws of the reference, over four chains."""
    gaussian_iterations: int = 100_000
    is_complete: bool = True
    """Whether Figure 1 has every curve and every problem every row, or just enough to see each once."""
    coreset_sizes: tuple[int, ...] = (10, 20, 50, 100, 200, 500)
    repeats: int = 10

    def steps(self, paper: int) -> int:
        """Training steps where the paper takes ``paper`` of them."""
        return max(round(self.share * paper), min(paper, 5))


FULL = Budget()
QUICK = Budget(
    share=0.01,
    kept=1_000,
    max_rows=2_000,
    reference_draws=2_000,
    gaussian_iterations=1_000,
    is_complete=False,
    coreset_sizes=(50,),
    repeats=1,
)
