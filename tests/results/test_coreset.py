"""The coreset as a thing of its own: tables, files, merging, and what other programs make of it."""

from __future__ import annotations

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.posterior.target import CoresetTarget

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(50, 2)), RNG.normal(size=50)


def coreset(indices, weights, x=X, y=Y):
    indices = np.asarray(indices)
    return cm.Coreset(indices, np.asarray(weights, float), len(y), {"x": x[indices], "y": y[indices]})


ONE, OTHER = coreset([3, 8, 20], [10.0, 15.0, 25.0]), coreset([8, 40], [30.0, 20.0])


def log_likelihood(part, theta):
    """A weighted sum that tells coresets apart."""
    return np.sum(part.weights * np.sin(theta + part.columns["x"] @ [1.0, 2.0] + part.columns["y"]))


def test_tables_from_what_was_fitted_a_frame_and_a_mapping():
    frame = pd.DataFrame({"y": Y, "city": [f"city {n}" for n in range(50)]}, index=range(100, 150))
    table = ONE.to_frame(frame)
    assert list(table.columns) == ["y", "city", "row", "weight"]
    assert list(table.index) == [103, 108, 120]
    assert list(table["city"]) == ["city 3", "city 8", "city 20"]
    table = ONE.to_frame({"x": X, "more": {"z": 2 * Y}})
    np.testing.assert_array_equal(table["more.z"], 2 * Y[[3, 8, 20]])
    np.testing.assert_array_equal(table[["x[0]", "x[1]"]], X[[3, 8, 20]])
    with pytest.raises(cm.InputError, match=r"got \[49\] rows; expected the 50 rows"):
        ONE.to_frame(frame[1:])


def test_coresets_of_one_data_set_average():
    merged = ONE.merge(OTHER, disjoint=False)
    assert list(merged.indices) == [3, 8, 20, 40]
    np.testing.assert_array_equal(merged.weights, [5.0, 22.5, 12.5, 10.0])
    assert merged.num_rows == 50
    for theta in (0.0, 0.7):
        mean = (log_likelihood(ONE, theta) + log_likelihood(OTHER, theta)) / 2
        assert log_likelihood(merged, theta) == pytest.approx(mean, rel=1e-12)


def test_coresets_of_shards_add_up():
    merged = ONE.merge(OTHER, disjoint=True)
    assert list(merged.indices) == [3, 8, 20, 58, 90]
    assert merged.num_rows == 100
    total = log_likelihood(ONE, 0.3) + log_likelihood(OTHER, 0.3)
    assert log_likelihood(merged, 0.3) == pytest.approx(total, rel=1e-12)


def test_merging_what_does_not_belong_together_is_refused():
    with pytest.raises(TypeError, match="disjoint"):
        ONE.merge(OTHER)
    with pytest.raises(cm.InputError, match="different values of 'y' in rows of the same number"):
        ONE.merge(coreset([8], [1.0], y=Y + 1), disjoint=False)
    with pytest.raises(cm.InputError, match=r"data sets of \[50, 30\] rows"):
        ONE.merge(coreset([8], [1.0], X[:30], Y[:30]), disjoint=False)
    with pytest.raises(cm.InputError, match="the same columns"):
        ONE.merge(cm.Coreset(np.array([0]), np.ones(1), 50, {"z": Y[:1]}), disjoint=True)


@pytest.mark.parametrize("name", ["coreset.csv", "coreset.parquet"])
def test_files_keep_every_bit(tmp_path, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    again = cm.Coreset.load(ONE.save(tmp_path / "folder" / name))
    np.testing.assert_array_equal(again.indices, ONE.indices)
    np.testing.assert_array_equal(again.weights, ONE.weights)
    assert again.num_rows == 50
    for column in ("x", "y"):
        np.testing.assert_array_equal(again.columns[column], ONE.columns[column])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_keep_their_types(tmp_path, suffix):
    """Missing numbers and words, too."""
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    columns = {
        "count": np.array([1, 2]), "is_late": np.array([True, False]), "delay": np.array([np.nan, np.inf]),
        "city": np.array(["Rome", "Oslo"], dtype=object),
    }  # fmt: skip
    again = cm.Coreset.load(cm.Coreset(np.array([4, 7]), np.ones(2), 9, columns).save(tmp_path / f"coreset{suffix}"))
    for column, values in columns.items():
        np.testing.assert_array_equal(again.columns[column], values)
        assert again.columns[column].dtype.kind == values.dtype.kind or column == "city"


@pytest.mark.parametrize("name", ["other.csv", "other.parquet"])
def test_other_files_are_refused(tmp_path, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(cm.InputError, match=r"a file that Coreset\.save wrote"):
        cm.Coreset.load(tmp_path / name)


STAN = """
data {
  int<lower=0> M;
  int<lower=0> D;
  matrix[M, D] x;
  array[M] int<lower=0, upper=1> y;
  vector<lower=0>[M] weight;
}
parameters {
  real alpha;
  vector[D] beta;
}
model {
  alpha ~ normal(0, 1);
  beta ~ normal(0, 1);
  for (m in 1:M)
    target += weight[m] * bernoulli_logit_lpmf(y[m] | alpha + x[m] * beta);
}
"""


def stan_target(data, alpha, beta):
    """What Stan adds up for the program above, by hand; constants of the priors are dropped, as ``~`` does."""
    total = -0.5 * alpha**2 - 0.5 * sum(value**2 for value in beta)
    for row, outcome, weight in zip(data["x"], data["y"], data["weight"], strict=True):
        logit = alpha + sum(value * slope for value, slope in zip(row, beta, strict=True))
        total += weight * (outcome * logit - np.logaddexp(0.0, logit))
    return total


def test_the_stan_recipe_has_our_log_density():
    """Stan itself is not run: its data file is written, and its target added up by hand."""
    indices, weights = np.array([3, 8, 20]), np.array([10.0, 0.0, 25.0])
    outcome = (Y > 0).astype(float)
    table = coreset(indices, weights, y=outcome).to_frame()
    names = [name for name in table if name.startswith("x[")]
    text = json.dumps(
        {
            "M": len(table),
            "D": len(names),
            "x": table[names].to_numpy().tolist(),
            "y": table["y"].astype(int).tolist(),
            "weight": table["weight"].tolist(),
        }
    )
    data = json.loads(text)
    declared = set(re.findall(r"(\w+);", STAN.split("parameters", maxsplit=1)[0]))
    assert declared == set(data)
    model = cm.Model(
        lambda p: -0.5 * p["alpha"] ** 2 - 0.5 * jnp.sum(p["beta"] ** 2),
        lambda p, rows: (
            rows["y"] * (p["alpha"] + rows["x"] @ p["beta"]) - jnp.logaddexp(0.0, p["alpha"] + rows["x"] @ p["beta"])
        ),
    )
    rows = {"x": jnp.asarray(X[indices]), "y": jnp.asarray(outcome[indices])}
    target = CoresetTarget(rows, jnp.asarray(weights), model)
    for seed in range(3):
        alpha, beta = np.random.default_rng(seed).normal(), np.random.default_rng(seed + 9).normal(size=2)
        ours = target.log_density({"alpha": jnp.asarray(alpha), "beta": jnp.asarray(beta)})
        assert stan_target(data, alpha, beta) == pytest.approx(float(ours), rel=1e-12)
        assert stan_target({**data, "weight": [1.0] * 3}, alpha, beta) != pytest.approx(float(ours), rel=1e-3)


def test_the_stan_program_is_the_one_of_the_guide():
    from pathlib import Path

    guide = (Path(__file__).parents[2] / "docs" / "bring_your_model.md").read_text()
    assert STAN.strip() in guide


def test_jax_is_left_alone(single_precision):
    """Merging and tables need no precision of their own."""
    assert not jax.config.jax_enable_x64
    assert ONE.merge(OTHER, disjoint=False).weights.dtype == np.float64
