"""A NumPyro logistic regression, unchanged, on a coreset: coefficients, and are the predicted probabilities right?

python examples/numpyro_logistic.py [--quick] [--rows 100000] [--output numpyro_logistic.png]
"""

from __future__ import annotations

import argparse

import matplotlib
import numpy as np
import numpyro
import numpyro.distributions as dist

import coreset_mcmc as cm

matplotlib.use("agg")
from matplotlib import pyplot

TRUTH = np.array([-1.0, 0.8, -0.5, 0.0, 0.3])


def model(features, outcome=None):
    """Logistic regression as one writes it in NumPyro."""
    coefficients = numpyro.sample("coefficients", dist.Normal(0.0, 1.0).expand([features.shape[1]]).to_event(1))
    with numpyro.plate("data", features.shape[0]):
        numpyro.sample("outcome", dist.Bernoulli(logits=features @ coefficients), obs=outcome)


def simulate(num_rows: int) -> dict[str, np.ndarray]:
    """Rows whose coefficients are known."""
    rng = np.random.default_rng(0)
    features = np.column_stack([np.ones(num_rows), rng.normal(size=(num_rows, len(TRUTH) - 1))])
    outcome = rng.uniform(size=num_rows) < 1 / (1 + np.exp(-features @ TRUTH))
    return {"features": features, "outcome": outcome.astype(int)}


def main(arguments: list[str] | None = None) -> None:
    """Fit, print, predict every row, plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and draws")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--output", default="numpyro_logistic.png")
    options = parser.parse_args(arguments)
    data = simulate(2_000 if options.quick else options.rows)
    names = ["intercept", "a", "b", "c", "d"]
    fit = cm.fit(
        cm.from_numpyro(model, dims={"coefficients": ("feature",)}, coords={"feature": names}),
        data,
        coreset_size=100 if options.quick else 500,
        draws=200 if options.quick else 1000,
        random_seed=0,
        progressbar=not options.quick,
    )
    print(fit.summary().to_string())
    print(fit)

    probability = fit.predict(draws=100)["posterior_predictive"]["outcome"].sel(statistic="mean").to_numpy()
    groups = np.array_split(np.argsort(probability), 15)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    draws = fit.posterior["coefficients"].to_numpy().reshape(-1, len(TRUTH))
    left.violinplot(draws, showextrema=False)
    left.plot(range(1, len(TRUTH) + 1), TRUTH, "k_", markersize=14, label="truth")
    left.set_xticks(range(1, len(TRUTH) + 1), names)
    left.set_ylabel("coefficient")
    left.legend(frameon=False)
    right.plot([0, 1], [0, 1], color="0.8")
    right.plot(
        [probability[group].mean() for group in groups], [data["outcome"][group].mean() for group in groups], "o"
    )
    right.set_xlabel("predicted probability")
    right.set_ylabel("share observed, all rows")
    figure.suptitle(f"{fit.coreset.size} of {fit.coreset.num_rows} rows, estimated KL {fit.kl_estimate:.2g} nats")
    figure.savefig(options.output, dpi=120)
    print("saved", options.output)


if __name__ == "__main__":
    main()
