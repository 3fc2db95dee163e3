"""A log-likelihood from SciPy, which JAX cannot see into: the Gumbel distribution of many yearly maxima.

python examples/black_box_numpy.py [--quick] [--rows 50000] [--output black_box_numpy.png]
"""

from __future__ import annotations

import argparse

import matplotlib
import numpy as np
from scipy import stats

import coreset_mcmc as cm

matplotlib.use("agg")
from matplotlib import pyplot


def log_prior(position):
    """Plain Python: any function of NumPy arrays that returns a number."""
    return -0.5 * (position["location"] ** 2 / 25 + position["log_scale"] ** 2)


def log_likelihood(position, rows):
    """One value for each row, straight from SciPy."""
    return stats.gumbel_r.logpdf(rows["y"], loc=position["location"], scale=np.exp(position["log_scale"]))


def main(arguments: list[str] | None = None) -> None:
    """Fit, print, plot the fitted density over the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and draws")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--output", default="black_box_numpy.png")
    options = parser.parse_args(arguments)
    num_rows = 500 if options.quick else options.rows
    y = stats.gumbel_r.rvs(loc=1.0, scale=2.0, size=num_rows, random_state=0)

    start = {"location": np.array(y.mean()), "log_scale": np.array(np.log(y.std()))}
    model = cm.Model.from_callable(log_prior, log_likelihood, start, name="Gumbel")
    fit = cm.fit(
        model,
        {"y": y},
        method=cm.LeastSquares(num_draws=60, num_chains=2, num_rounds=3) if options.quick else None,
        coreset_size=30 if options.quick else 100,
        draws=30 if options.quick else 500,
        tune=10 if options.quick else 200,
        chains=2,
        random_seed=0,
        progressbar=not options.quick,
    )
    print(fit.summary().to_string())
    print(fit)

    draws = fit.posterior.stack(sample=("chain", "draw"))
    grid = np.linspace(y.min(), y.max(), 300)
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.hist(y, bins=60, density=True, color="0.85", label=f"all {num_rows} rows")
    for number in np.linspace(0, draws.sizes["sample"] - 1, 30).astype(int):
        one = draws.isel(sample=number)
        density = stats.gumbel_r.pdf(grid, float(one["location"]), np.exp(float(one["log_scale"])))
        axes.plot(grid, density, color="C3", alpha=0.3, linewidth=1)
    axes.set_xlabel("yearly maximum")
    axes.set_title(f"30 posterior draws of the density, from {fit.coreset.size} weighted rows", loc="left")
    axes.legend(frameon=False)
    figure.savefig(options.output, dpi=120)
    print("saved", options.output)


if __name__ == "__main__":
    main()
