"""What a stage of work took."""

from __future__ import annotations

from dataclasses import dataclass

from coreset_mcmc.driver.run import Run


@dataclass(frozen=True)
class Cost:
    """What one stage of a fit took."""

    seconds: float
    compile_seconds: float
    num_steps: int
    num_evaluations: int
    """Log-likelihoods of single rows."""
    reason: str
    """Why the stage ended."""

    @classmethod
    def of(cls, *runs: Run) -> Cost:
        """The total over consecutive runs; the reason is the last one's."""
        return cls(
            seconds=sum(run.seconds for run in runs),
            compile_seconds=sum(run.compile_seconds for run in runs),
            num_steps=sum(run.num_steps for run in runs),
            num_evaluations=sum(run.num_evaluations for run in runs),
            reason=runs[-1].reason if runs else "not needed",
        )
