"""A real table to try the command line on."""

from __future__ import annotations

from pathlib import Path

from coreset_mcmc.commands.folder import RunFolder, writing
from coreset_mcmc.core.errors import require
from coreset_mcmc.datasets.flights import FLIGHT_FEATURES, flights_with_weather

MORE_COLUMNS = ("origin", "carrier", "dep_delay")


def write_flights(path: Path) -> Path:
    """Flights with complete weather; ``cancelled`` is 1 for those that never left, which have no ``dep_delay``."""
    require(
        path.suffix in (".parquet", ".csv"),
        str(path),
        got=f"the suffix {path.suffix!r}",
        expected=".parquet or .csv",
        fix="For example flights.parquet.",
    )
    require(
        not path.exists(),
        str(path),
        got="a file that exists",
        expected="a new name",
        fix="Choose another, or delete it.",
    )
    table = flights_with_weather()
    table["cancelled"] = table["dep_time"].isna().astype(int)
    kept = table[["cancelled", *FLIGHT_FEATURES, *MORE_COLUMNS]]
    with writing(RunFolder(path.parent)):
        path.parent.mkdir(parents=True, exist_ok=True)
        kept.to_parquet(path, index=False) if path.suffix == ".parquet" else kept.to_csv(path, index=False)
    return path
