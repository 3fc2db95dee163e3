"""Reference draws of full posteriors that a Gaussian at the mode does not describe, checked before anyone trusts them.

For each problem: NUTS on all rows (NumPyro, double precision, chains started uniformly in [-2, 2] in every coordinate),
then

- rank-normalised R-hat below 1.01 and the smallest bulk ESS (Vehtari et al. 2021), and no divergent transition;
- how far the Laplace approximation is: the two-moment KL from it to the reference, and the share of its draws that
  survives importance weighting, (sum w)^2 / (n sum w^2), which is 1 where the posterior is that Gaussian.

The checks look at functions that do not change under the symmetries of a posterior: every draw folded onto one copy,
and what the data identifies. Prints one line of Markdown for each problem and exits with 1 if a reference fails its
checks; --quick makes one small reference and judges nothing.

    coreset-mcmc bench references --out references
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import jax

from coreset_mcmc_benchmarks.draws import flattened
from coreset_mcmc_benchmarks.markdown import line_of
from coreset_mcmc_benchmarks.options import quick_parser
from coreset_mcmc_benchmarks.references.checks import convergence, laplace_distance
from coreset_mcmc_benchmarks.references.problems import NUM_ROWS, PROBLEMS
from coreset_mcmc_benchmarks.references.sampling import Settings, reference_draws

MAX_RHAT = 1.01
QUICK_PROBLEM, QUICK_ROWS = "unidentified-regression", 500


def report(name: str, num_rows: int, settings: Settings, folder: Path) -> bool:
    """Make or load one reference, print its line, and say whether it passed."""
    problem = PROBLEMS[name]
    reference = reference_draws(name, settings, folder, num_rows)
    chains = convergence(problem, reference.draws)
    with jax.enable_x64(True):
        model, data = problem.make(num_rows)
        laplace = laplace_distance(problem, model, data, reference, chains.ess)
    size, dimension = len(jax.tree.leaves(data)[0]), flattened(reference.draws).shape[-1]
    steps = reference.num_gradients / reference.log_density.size
    cells = [
        name,
        f"{size:,}",
        f"{dimension}",
        f"{reference.log_density.size:,}",
        f"{steps:.0f}",
        f"{reference.seconds:.0f}",
        f"{chains.rhat:.4f}",
        f"{chains.ess:,.0f}",
        f"{reference.num_divergent}",
    ]
    if laplace is None:
        cells += ["no peak", "-", "-", "-", "-"]
    else:
        cells += [f"{laplace.kl:.3g}", f"{laplace.folded_kl:.3g}", f"{laplace.floor:.2g}"]
        cells += [f"{laplace.worst_shift:.2f}", f"{100 * laplace.surviving:.2g} %"]
    print(line_of(cells), flush=True)
    return chains.rhat < MAX_RHAT and reference.num_divergent == 0


HEADINGS = (
    "problem",
    "N",
    "d",
    "draws",
    "gradients per draw",
    "CPU s",
    "R-hat",
    "bulk ESS",
    "divergent",
    "Laplace KL",
    "folded KL",
    "floor",
    "worst shift",
    "surviving",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the references asked for and print their table."""
    parser = quick_parser("references", __doc__)
    parser.add_argument("--model", nargs="+", choices=list(PROBLEMS), metavar="NAME", help="only these problems")
    parser.add_argument("--draws", type=int, default=Settings.draws, help="kept from each chain")
    parser.add_argument("--tune", type=int, default=Settings.tune, help="discarded from each chain")
    parser.add_argument("--chains", type=int, default=Settings.chains)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--out", type=Path, default=Path("references"), help="folder of the cache")
    options = parser.parse_args(arguments)
    names = options.model or ([QUICK_PROBLEM] if options.quick else list(PROBLEMS))
    draws, tune, chains = (200, 200, 2) if options.quick else (options.draws, options.tune, options.chains)
    num_rows = QUICK_ROWS if options.quick else NUM_ROWS
    print(line_of(HEADINGS))
    print("|---" * len(HEADINGS) + "|", flush=True)
    passed = [
        report(name, num_rows, Settings(draws, tune, chains, options.seed, PROBLEMS[name].target_accept), options.out)
        for name in names
    ]
    return 0 if all(passed) or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
