"""The Stan recipe of docs/bring_your_model.md, run: does Stan's NUTS on the weighted coreset give our posterior?

The program is taken from the page itself. Needs PyStan (``pip install pystan``), which compiles the program with the
C++ compiler of the machine; the tests do without. Writes ``docs/benchmarks/interop_stan.md``.

    python benchmarks/interop_stan.py [--rows 3000] [--coreset-size 200]
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import stan
from arviz_stats.base.array import array_stats

import coreset_mcmc as cm

DOCS = Path(__file__).parents[1] / "docs"
NUM_CHAINS, NUM_DRAWS = 4, 1_000


def log_prior(position: dict[str, jax.Array]) -> jax.Array:
    """alpha and beta are standard normal, as in the Stan program."""
    return -0.5 * (position["alpha"] ** 2 + jnp.sum(position["beta"] ** 2))


def log_likelihood(position: dict[str, jax.Array], rows: dict[str, jax.Array]) -> jax.Array:
    """Bernoulli with a logit link."""
    predictor = position["alpha"] + rows["x"] @ position["beta"]
    return rows["y"] * predictor - jnp.logaddexp(0.0, predictor)


def stan_program() -> str:
    """The first Stan program of the guide."""
    found = re.search(r"```stan\n(.*?)```", (DOCS / "bring_your_model.md").read_text(), re.DOTALL)
    assert found is not None
    return found.group(1)


def main() -> None:
    """Fit, refit in Stan, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--coreset-size", type=int, default=200)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(options.rows, 3))
    y = (rng.random(options.rows) < 1 / (1 + np.exp(-(0.5 + x @ np.array([1.0, -0.5, 0.0]))))).astype(float)
    model = cm.Model(log_prior, log_likelihood, {"alpha": np.zeros(()), "beta": np.zeros(3)})
    fit = cm.fit(
        model, {"x": x, "y": y}, coreset_size=options.coreset_size, draws=NUM_DRAWS, random_seed=1, progressbar=False
    )
    table = fit.coreset.to_frame()
    table = table[table["weight"] > 0]
    columns = [name for name in table if name.startswith("x[")]
    data = {
        "M": len(table),
        "D": len(columns),
        "x": table[columns].to_numpy().tolist(),
        "y": table["y"].astype(int).tolist(),
        "weight": table["weight"].tolist(),
    }
    began = time.perf_counter()
    posterior = stan.build(stan_program(), data=data, random_seed=1)
    sampled = posterior.sample(num_chains=NUM_CHAINS, num_samples=NUM_DRAWS)
    seconds = time.perf_counter() - began
    by_draw = np.concatenate([sampled["alpha"], sampled["beta"]])  # (parameter, draw * chain), chains interleaved
    theirs = by_draw.reshape(len(by_draw), NUM_DRAWS, NUM_CHAINS).transpose(2, 1, 0)
    group = fit.posterior
    ours = np.concatenate([group["alpha"].to_numpy()[..., None], group["beta"].to_numpy()], axis=2)
    lines = [
        "# The Stan recipe, run",
        "",
        f"`python benchmarks/interop_stan.py`: a logistic regression on {options.rows:,} rows, coreset of "
        f"{options.coreset_size}, of which {len(table)} rows have a weight. Stan's NUTS on the weighted rows with the "
        "program of [the guide](../bring_your_model.md#take-the-coreset-elsewhere), "
        f"{NUM_CHAINS} chains of {NUM_DRAWS:,} draws ({seconds:.0f} s, C++ compilation included), against our draws of "
        "the same coreset.",
        "",
        "| parameter | our mean | Stan's | difference in Monte Carlo errors | our sd | Stan's |",
        "|---|---|---|---|---|---|",
    ]
    for place, name in enumerate(["alpha", "beta[0]", "beta[1]", "beta[2]"]):
        moments = []
        for draws in (ours[..., place], theirs[..., place]):
            size = float(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="mean"))
            moments.append((draws.mean(), draws.std(), draws.std() / np.sqrt(size)))
        (mean, deviation, error), (their_mean, their_deviation, their_error) = moments
        gap = (mean - their_mean) / np.hypot(error, their_error)
        lines.append(
            f"| {name} | {mean:.4f} | {their_mean:.4f} | {gap:+.1f} | {deviation:.4f} | {their_deviation:.4f} |"
        )
    text = "\n".join([*lines, ""])
    (DOCS / "benchmarks" / "interop_stan.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
