"""The Stan recipe of docs/bring_your_model.md, run: does Stan's NUTS on the weighted coreset give our posterior?

The program is taken from the page itself. Needs PyStan (``pip install pystan``), which compiles the program with the
C++ compiler of the machine and is in no extra.

    coreset-mcmc bench stan --guide docs/bring_your_model.md --out docs/benchmarks
"""

from __future__ import annotations

import importlib
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from arviz_stats.base.array import array_stats

import coreset_mcmc as cm
from coreset_mcmc.core.errors import require
from coreset_mcmc_benchmarks.draws import draws_of, flattened
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.options import quick_parser

NUM_CHAINS, NUM_DRAWS, NUM_FEATURES = 4, 1_000, 3
NAMES = ("alpha", *(f"beta[{number}]" for number in range(NUM_FEATURES)))
HEADINGS = ("parameter", "our mean", "Stan's", "difference in Monte Carlo errors", "our sd", "Stan's")


def log_prior(position: dict[str, jax.Array]) -> jax.Array:
    """alpha and beta are standard normal, as in the Stan program."""
    return -0.5 * (position["alpha"] ** 2 + jnp.sum(position["beta"] ** 2))


def log_likelihood(position: dict[str, jax.Array], rows: dict[str, jax.Array]) -> jax.Array:
    """Bernoulli with a logit link."""
    predictor = position["alpha"] + rows["x"] @ position["beta"]
    return rows["y"] * predictor - jnp.logaddexp(0.0, predictor)


def stan_program(guide: Path) -> str:
    """The first Stan program of the guide."""
    text = guide.read_text() if guide.exists() else ""
    found = re.search(r"```stan\n(.*?)```", text, re.DOTALL)
    require(
        found is not None, "--guide", got=f"no Stan program in {guide}", expected="the guide of this repository",
        fix="Name docs/bring_your_model.md of a checkout.",
    )  # fmt: skip
    assert found is not None
    return found.group(1)


def our_fit(num_rows: int, coreset_size: int) -> cm.Fit:
    """A logistic regression on simulated rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, NUM_FEATURES))
    y = (rng.random(num_rows) < 1 / (1 + np.exp(-(0.5 + x @ np.array([1.0, -0.5, 0.0]))))).astype(float)
    model = cm.Model(log_prior, log_likelihood, {"alpha": np.zeros(()), "beta": np.zeros(NUM_FEATURES)})
    return cm.fit(model, {"x": x, "y": y}, coreset_size=coreset_size, draws=NUM_DRAWS, random_seed=1, progressbar=False)


def stan_data(fit: cm.Fit) -> dict[str, object]:
    """The rows of the coreset that have a weight, as the program names them."""
    table = fit.coreset.to_frame()
    table = table[table["weight"] > 0]
    features = [f"x[{number}]" for number in range(NUM_FEATURES)]
    return {
        "M": len(table),
        "D": NUM_FEATURES,
        "x": table[features].to_numpy().tolist(),
        "y": table["y"].astype(int).tolist(),
        "weight": table["weight"].tolist(),
    }


def stan_draws(program: str, data: dict[str, object]) -> np.ndarray:
    """Stan's NUTS, (chain, draw, parameter)."""
    stan = importlib.import_module("stan")
    sampled = stan.build(program, data=data, random_seed=1).sample(num_chains=NUM_CHAINS, num_samples=NUM_DRAWS)
    by_draw = np.concatenate([sampled["alpha"], sampled["beta"]])  # (parameter, draw * chain), chains interleaved
    return by_draw.reshape(len(by_draw), NUM_DRAWS, NUM_CHAINS).transpose(2, 1, 0)


class Moments(NamedTuple):
    """Of one parameter."""

    mean: float
    deviation: float
    error: float


def moments(draws: np.ndarray) -> Moments:
    """From draws (chain, draw)."""
    size = float(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="mean"))
    return Moments(float(draws.mean()), float(draws.std()), float(draws.std() / np.sqrt(size)))


def comparison_lines(ours: np.ndarray, theirs: np.ndarray) -> list[str]:
    """One line for each parameter."""
    rows = []
    for place, name in enumerate(NAMES):
        mine, other = moments(ours[..., place]), moments(theirs[..., place])
        gap = (mine.mean - other.mean) / np.hypot(mine.error, other.error)
        means = [f"{mine.mean:.4f}", f"{other.mean:.4f}", f"{gap:+.1f}"]
        rows.append([name, *means, f"{mine.deviation:.4f}", f"{other.deviation:.4f}"])
    return table_lines(HEADINGS, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, refit in Stan, compare."""
    parser = quick_parser("stan", __doc__)
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--coreset-size", type=int, default=200)
    parser.add_argument("--guide", type=Path, default=Path("docs/bring_your_model.md"), help="page with the program")
    parser.add_argument("--out", type=Path, default=Path("interop"), help="folder of the page")
    options = parser.parse_args(arguments)
    num_rows, coreset_size = (300, 50) if options.quick else (options.rows, options.coreset_size)
    program = stan_program(options.guide)
    fit = our_fit(num_rows, coreset_size)
    data = stan_data(fit)
    began = time.perf_counter()
    theirs = stan_draws(program, data)
    seconds = time.perf_counter() - began
    lines = [
        "# The Stan recipe, run",
        "",
        f"`coreset-mcmc bench stan --out docs/benchmarks`: a logistic regression on {num_rows:,} rows, coreset of "
        f"{coreset_size}, of which {data['M']} rows have a weight. Stan's NUTS on the weighted rows with the "
        "program of [the guide](../bring_your_model.md#take-the-coreset-elsewhere), "
        f"{NUM_CHAINS} chains of {NUM_DRAWS:,} draws ({seconds:.0f} s, C++ compilation included), against our draws of "
        "the same coreset.",
        "",
        *comparison_lines(flattened(draws_of(fit)), theirs),
        "",
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "interop_stan.md").write_text("\n".join(lines))
    print(*lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
