"""What a page takes for granted: the reader's data and models, here small and made up.

By page, and then by words that only the block has that needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import coreset_mcmc as cm

ROWS = 240
Names = dict[str, Any]


def _generator() -> np.random.Generator:
    return np.random.default_rng(0)


def line() -> Names:
    """A predictor, a response that follows it, and both as a table."""
    x, noise = _generator().normal(size=(2, ROWS))
    y = 1 + 2 * x + noise
    return {"x": x, "y": y, "data": pd.DataFrame({"x": x, "y": y})}


def flights() -> pd.DataFrame:
    """Columns of the table of flights that the pages name."""
    generator = _generator()
    table = pd.DataFrame(
        {
            "hour": generator.integers(5, 24, size=ROWS),
            "distance": generator.uniform(80, 5_000, size=ROWS),
            "temp": generator.normal(57, 18, size=ROWS),
            "visib": generator.uniform(0, 10, size=ROWS),
            "carrier": np.resize(["B6", "EV", "UA"], ROWS),
            "seats": generator.integers(20, 400, size=ROWS),
        }
    )
    table["cancelled"] = generator.binomial(1, 1 / (1 + np.exp(table["visib"] - 3)))
    table["delayed"] = generator.binomial(1, 0.4, size=ROWS)
    return table


def flights_on_disk() -> Names:
    flights().to_parquet("flights.parquet")
    return {}


def rows_in_files() -> Names:
    """Three columns and a response in two Parquet files."""
    generator = _generator()
    table = pd.DataFrame(generator.normal(size=(ROWS, 3)), columns=["x0", "x1", "x2"])
    table["y"] = generator.binomial(1, 1 / (1 + np.exp(-table["x0"]))).astype(float)
    Path("big").mkdir()
    for number, part in enumerate(np.array_split(np.arange(ROWS), 2)):
        table.iloc[part].to_parquet(f"big/part-{number}.parquet", index=False)
    return {}


def flights_in_files() -> Names:
    """Two files of each format."""
    table = flights()
    Path("big").mkdir()
    for number, part in enumerate([table.iloc[: ROWS // 2], table.iloc[ROWS // 2 :]], start=1):
        part.to_parquet(f"big/part-{number}.parquet")
        part.to_csv(f"daily-{number}.csv", index=False)
    return {}


def sales_on_disk() -> Names:
    generator = _generator()
    price = generator.uniform(1, 3, size=ROWS)
    table = pd.DataFrame({"units": generator.poisson(9 / price), "price": price, "region": np.resize([1, 2, 3], ROWS)})
    table.to_csv("sales.csv", index=False)
    return {}


def numpyro_line(x, y=None):
    """A regression through zero."""
    import numpyro
    from numpyro import distributions as dist

    slope = numpyro.sample("slope", dist.Normal(0, 2))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(slope * x, 1.0), obs=y)


def matrix() -> Names:
    """Columns and a response, as scikit-learn has them."""
    return {"X": line()["x"][:40, None], "y": line()["y"][:40]}


def groups() -> Names:
    return {**line(), "group": np.resize(np.arange(50), ROWS)}


def houses() -> Names:
    generator = _generator()
    floor = generator.integers(0, 2, size=ROWS)
    log_radon = 1.5 - 0.6 * floor + generator.normal(size=ROWS)
    counties = ["Aitkin", "Becker", "Cass"]
    county = np.resize(np.arange(3), ROWS)
    return {"counties": counties, "county": county, "floor": floor, "log_radon": log_radon}


def pupils() -> Names:
    generator = _generator()
    table = pd.DataFrame(
        {
            "daysabs": generator.negative_binomial(2, 0.3, size=ROWS),
            "prog": np.resize(["academic", "general", "vocational"], ROWS),
            "math": generator.normal(50, 20, size=ROWS),
            "school": np.resize(["north", "south", "west", "east"], ROWS),
        }
    )
    return {"data": table}


def fit_of_the_line() -> Names:
    """What "Take the coreset elsewhere" starts from: a coreset of a regression, and the table it is of."""
    data = line()["data"]
    return {"fit": cm.fit(cm.from_numpyro(numpyro_line), dict(data)), "data": data}


def table_of_outcomes() -> Names:
    """A coreset with a matrix of features, as ``to_frame`` names its columns."""
    generator = _generator()
    x = generator.normal(size=(ROWS, 2))
    data = {"x": x, "y": generator.binomial(1, 0.5, size=ROWS).astype(float)}
    table = cm.fit(cm.models.logistic_regression(2), data).coreset.to_frame()
    return {"table": table[table["weight"] > 0]}


def priors_of_the_line() -> Names:
    import bambi as bmb

    wide = bmb.Prior("Normal", mu=0, sigma=20)
    return {"priors": {"Intercept": wide, "x": wide, "sigma": bmb.Prior("HalfCauchy", beta=10)}}


def next_day() -> Names:
    return {"tomorrow": flights().head(5)}


def tomorrow_on_disk() -> Names:
    flights().head(9).drop(columns="cancelled").to_parquet("tomorrow.parquet")
    return {}


def table_with_groups() -> Names:
    return {"frame": line()["data"].assign(g=np.resize(["a", "b"], ROWS))}


def fit_of_flights() -> Names:
    table = flights()
    return {"fit": cm.fit(cm.from_formula("cancelled ~ hour + distance", table, family="bernoulli")), "table": table}


def model_and_data() -> Names:
    data = {"x": line()["x"][:, None], "y": line()["y"]}
    return {"cm": cm, "model": cm.models.linear_regression(1), "data": data}


WITH_FLIGHTS = ["distrust", "exact_draws", "groups", "many_parameters", "prediction", "priors", "stan"]
WITH_FLIGHTS += ["weights_and_offsets"]
STAND_INS: dict[str, dict[str, Callable[[], Names]]] = {
    "docs/bring_your_model.md": {
        "cm.from_numpyro(model": groups,
        "cm.from_pymc(model)": houses,
        "cm.from_bambi(model)": pupils,
        "CoresetRegressor": matrix,
        "stats.gumbel_r": line,
        "table = fit.coreset.to_frame()": fit_of_the_line,
        "rows = fit.coreset.to_frame(data)": priors_of_the_line,
        "coreset.json": table_of_outcomes,
    },
    "docs/command_line.md": {
        "coreset-mcmc fit sales.csv": sales_on_disk,
        '"big/*.parquet"': flights_in_files,
        "coreset-mcmc predict run": tomorrow_on_disk,
    },
    "docs/formulas.md": {
        'cm.read_table("flights.parquet")': flights_on_disk,
        "predicted = fit.predict(tomorrow)": next_day,
        '"y ~ x * g"': table_with_groups,
    },
    **{f"docs/how_to/{page}.md": {'cm.read_table("flights.parquet")': flights_on_disk} for page in WITH_FLIGHTS},
    "docs/how_to/cluster.md": {"cm.models.logistic_regression(3), scan": rows_in_files},
    "docs/report.md": {"write_report(content": fit_of_flights},
    "docs/scale.md": {"cm.models.logistic_regression(3), scan)": rows_in_files},
    "docs/trust.md": {"fit.trust()": model_and_data},
}
