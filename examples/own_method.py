"""A coreset construction of one's own in one class: weights that match moments, beside uniform ones and the default.

python examples/own_method.py [--quick] [--rows 50000] [--output own_method.png]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import matplotlib
import numpy as np
from scipy.optimize import nnls

import coreset_mcmc as cm
from coreset_mcmc import extend

matplotlib.use("agg")
from matplotlib import pyplot


def moments(rows) -> np.ndarray:
    """1, x, x x', y and y x of each row: what a regression sees of the data at first."""
    x, y = np.asarray(rows["x"]), np.asarray(rows["y"])
    pairs = np.einsum("ni,nj->nij", x, x)[:, *np.triu_indices(x.shape[1])]
    return np.column_stack([np.ones(len(y)), x, pairs, y, y[:, None] * x])


@extend.pytree
@dataclass(frozen=True)
class MomentMatching(extend.WithoutTraining, extend.MovesByKernel):
    """Weights w >= 0 for the selected rows such that weighted moments are those of all rows (least squares).

    There is nothing to train, so ``WithoutTraining`` brings the first stage; ``finish`` hands over a sampler, and
    progress bars, checkpoints, counts and results come from the package. ``MovesByKernel`` says that a kernel moves the
    chains: if the user names none, ``fit`` shapes one in a pilot run.
    """

    kernel: extend.Kernel | None = None

    name = "moment-matching"

    def check(self, problem):
        """Refuse problems on which the method cannot work."""
        assert set(problem.rows) == {"x", "y"}

    def finish(self, state, problem, *, kernel, num_chains):
        """From what training left, here nothing, to a sampler of the final coreset."""
        del state
        some, everything = moments(problem.rows), moments(problem.data.arrays)
        spread = everything.std(axis=0) + (everything.std(axis=0) == 0)
        weights, _ = nnls((some / spread).T, everything.sum(axis=0) / spread)
        coreset = extend.SelectedRows(np.asarray(problem.indices), weights)
        chosen = kernel or self.moving_kernel
        return extend.sample_coreset(problem, coreset, problem.initial_positions, chosen, num_chains)


def main(arguments: list[str] | None = None) -> None:
    """Fit with three methods, print how good they are, plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and draws")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--output", default="own_method.png")
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    num_rows = 2_000 if options.quick else options.rows
    x = rng.normal(size=(num_rows, 3))
    data = {"x": x, "y": (rng.uniform(size=num_rows) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.2]))).astype(float)}

    settings = {
        "coreset_size": 100 if options.quick else 500,
        "draws": 200 if options.quick else 1000,
        "chains": 2,
        "random_seed": 0,
        "progressbar": not options.quick,
    }
    methods = {"uniform": cm.Uniform(), "moment matching": MomentMatching()}
    if not options.quick:
        methods["default"] = None
    fits = {
        name: cm.fit(cm.models.logistic_regression(3), data, method=method, **settings)
        for name, method in methods.items()
    }
    for name, fit in fits.items():
        print(f"{name}: estimated KL {fit.kl_estimate:.3g} nats")
    print(fits["moment matching"].summary().to_string())

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.bar(list(fits), [fit.kl_estimate for fit in fits.values()], color="C0")
    left.set_yscale("log")
    left.set_ylabel("estimated KL to the full posterior (nats)")
    for number, (name, fit) in enumerate(fits.items()):
        draws = fit.posterior["beta"].to_numpy().reshape(-1, 4)
        places = np.arange(4) + 0.2 * (number - 1)
        low, high = np.quantile(draws, [0.055, 0.945], axis=0)
        right.vlines(places, low, high, color=f"C{number}", linewidth=4, label=name)
    right.set_xticks(range(4), ["intercept", "a", "b", "c"])
    right.set_ylabel("coefficient, interval of 89 %")
    right.legend(frameon=False)
    figure.savefig(options.output, dpi=120)
    print("saved", options.output)


if __name__ == "__main__":
    main()
