"""Which features matter? A spike-and-slab regression, whose indicators are discrete, sampled by Gibbs on a coreset.

python examples/discrete_gibbs.py [--quick] [--rows 50000] [--output discrete_gibbs.png]
"""

from __future__ import annotations

import argparse

import matplotlib
import numpy as np

import coreset_mcmc as cm

matplotlib.use("agg")
from matplotlib import pyplot

TRUTH = np.array([0.0, 0.0, 0.0, 0.0, 0.6, 0.8, 1.0, -1.2])


def main(arguments: list[str] | None = None) -> None:
    """Fit, print inclusion probabilities, plot them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and draws")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--output", default="discrete_gibbs.png")
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    num_rows = 1_000 if options.quick else options.rows
    x = rng.normal(size=(num_rows, len(TRUTH)))
    data = {"x": x, "y": rng.normal(x @ TRUTH, 5.0)}

    fit = cm.fit(
        cm.models.sparse_regression(len(TRUTH)),
        data,
        coreset_size=100 if options.quick else 500,
        draws=200 if options.quick else 2000,
        random_seed=0,
        progressbar=not options.quick,
        var_names=["beta", "gamma"],
    )
    print(fit.summary(var_names=["beta"]).to_string())
    posterior = fit.posterior
    inclusion = posterior["gamma"].mean(("chain", "draw")).to_numpy()
    for number, (probability, coefficient) in enumerate(zip(inclusion, TRUTH, strict=True)):
        print(f"feature {number}: included with probability {probability:.2f}; true coefficient {coefficient}")
    print(fit)

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.bar(range(len(TRUTH)), inclusion, color=np.where(TRUTH == 0, "0.7", "C0"))
    left.set_xlabel("feature (blue: it matters in truth)")
    left.set_ylabel("inclusion probability")
    right.violinplot(posterior["beta"].to_numpy().reshape(-1, len(TRUTH)), range(len(TRUTH)), showextrema=False)
    right.plot(range(len(TRUTH)), TRUTH, "k_", markersize=14, label="truth")
    right.set_xlabel("feature")
    right.set_ylabel("coefficient")
    right.legend(frameon=False)
    figure.savefig(options.output, dpi=120)
    print("saved", options.output)


if __name__ == "__main__":
    main()
