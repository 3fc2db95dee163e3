"""Everything that determines a run on a table, as a TOML file.

A run echoes its whole configuration into its folder, with the seed that was drawn and the digest of the data, so that
``coreset-mcmc fit --config run/config.toml`` repeats it exactly. The reader is written by hand because a misspelt key
should be answered with the key that was meant; validators of schemas only say that it is unknown.
"""

from __future__ import annotations

import difflib
import hashlib
import platform
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

import tomli_w

from coreset_mcmc.commands.budget import AUTO, check_engine
from coreset_mcmc.commands.paths import absolute
from coreset_mcmc.core.errors import InputError, require, require_count, require_positive
from coreset_mcmc.methods.registry import DEFAULT_METHOD

CONFIG_FILE = "config.toml"


@dataclass(frozen=True)
class DataPart:
    """The table."""

    path: str | list[str] = ""
    """CSV, Parquet, Feather or npz; a file, a folder, a pattern, an address, or several of them. A relative path counts
    from the folder of the configuration file."""
    sha256: str = ""
    """Of a single file that was read into memory; a run is resumed only on the same bytes."""
    files: dict[str, str] = field(default_factory=dict)
    """What is known of each file of other tables without reading all of it: size, time, index at its end. A run is
    resumed only on the same files."""
    drop_missing: bool = False
    """Whether rows with missing values are dropped; otherwise they are refused."""
    where: str | None = None
    """A condition such as "duration > 0"; other rows are left out."""
    weights: str | None = None
    """The column with which the log-likelihood of each row is multiplied."""
    lump_rare: int | None = None
    """Levels of factors with fewer rows become one level, "other"."""

    @property
    def paths(self) -> list[str]:
        return [self.path] if isinstance(self.path, str) else list(self.path)


@dataclass(frozen=True)
class EnginePart:
    """Who passes over the rows."""

    name: str = AUTO
    """"memory", "stream", "dask" or "ray"; "auto" for memory if the table is small enough, stream otherwise."""
    scheduler: str = ""
    """The address of a Dask or Ray cluster."""
    memory_limit: str = ""
    """Memory that may be used, such as "2GB", if that is not all that is free."""


@dataclass(frozen=True)
class ModelPart:
    """What is fitted."""

    formula: str = ""
    family: str = "gaussian"
    link: str | None = None
    """Another link than that of the family."""
    trials: str | None = None
    """The column of trials of a binomial response, or their number, if the formula does not say it."""
    priors: dict[str, str] = field(default_factory=dict)
    """By the name of a parameter or term, e.g. ``hour = "Normal(0, 1)"``."""


@dataclass(frozen=True)
class CoresetPart:
    """How the coreset is found."""

    size: int | str | None = None
    """Rows; left out, as many as ``fit`` takes by default; "auto" for a coreset that grows."""
    kl_target: float = 0.05
    """Nats; with ``size = "auto"`` the coreset grows until the estimated KL is below this."""
    method: str = DEFAULT_METHOD.name
    gaussian_term: bool | None = None
    """Whether a Gaussian term stands beside the rows; left out, where there are few rows for the parameters."""


@dataclass(frozen=True)
class SamplingPart:
    """How its posterior is sampled."""

    draws: int = 1000
    tune: int = 500
    chains: int = 4
    seed: int | None = None


@dataclass(frozen=True)
class TrustPart:
    """How the result is checked."""

    check: bool = True
    draws: int = 400
    """Draws in the pass over all rows."""
    coresets: int = 2
    """Independently drawn coresets that are compared; 1 for none."""
    sensitivity: bool = True
    """Whether a coreset with half the rows is tried."""


@dataclass(frozen=True)
class OutputPart:
    """What is left behind."""

    interval: float = 0.89
    """Probability of the intervals."""
    report: bool = True


@dataclass(frozen=True)
class Config:
    """A whole run."""

    data: DataPart = field(default_factory=DataPart)
    engine: EnginePart = EnginePart()
    model: ModelPart = field(default_factory=ModelPart)
    coreset: CoresetPart = CoresetPart()
    sampling: SamplingPart = SamplingPart()
    trust: TrustPart = TrustPart()
    output: OutputPart = OutputPart()
    made_with: dict[str, str] = field(default_factory=dict)
    """Versions of the run that wrote the file; other versions may give other bits."""

    def changed(self, part: str, **values: Any) -> Config:
        """The same with the values that are not None."""
        given = {name: value for name, value in values.items() if value is not None}
        return replace(self, **{part: replace(getattr(self, part), **given)})

    def for_people(self) -> dict[str, Any]:
        """As plain values, with as much about the files as a page can show."""
        content = asdict(self)
        files = content["data"].pop("files")
        if files:
            whole = "\n".join(f"{name} {text}" for name, text in files.items())
            content["data"] |= {"num_files": len(files), "fingerprint": hashlib.sha256(whole.encode()).hexdigest()}
        return content

    def check(self) -> None:
        """Refuse what cannot be run, before any file is read."""
        for subject, values, fix in (
            ("data", self.data.paths, "Name a table: coreset-mcmc fit flights.parquet ..."),
            ("--formula", [self.model.formula], 'Pass one: --formula "delayed ~ hour + distance".'),
        ):
            is_given = bool(values) and all(value.strip() for value in values)
            require(is_given, subject, got="nothing", expected="a value", fix=fix)
        check_engine(self.engine.name, self.engine.scheduler, self.engine.memory_limit)
        size = self.coreset.size
        if size is not None and size != AUTO:
            require_count("--coreset-size", size, at_least=1, fix='Pass a number of rows, or "auto".')
        require_positive("--kl-target", self.coreset.kl_target)
        sampling = self.sampling
        require_count("--draws", sampling.draws, at_least=4, fix="A thousand for each chain are a good choice.")
        require_count("--tune", sampling.tune, at_least=0, fix="Use 0 to keep every draw.")
        require_count("--chains", sampling.chains, at_least=1, fix="Four chains let R-hat tell whether they agree.")
        if sampling.seed is not None:
            require_count("--seed", sampling.seed, at_least=0, fix="Pass a whole number, or leave it out.")
        require_count("[trust] draws", self.trust.draws, at_least=25, fix="A few hundred are a good choice.")
        require_count("[trust] coresets", self.trust.coresets, at_least=1, fix="Use 1 to compare none.")
        require(
            0 < self.output.interval < 1,
            "--interval",
            got=self.output.interval,
            expected="a probability between 0 and 1",
            fix="For example 0.89 or 0.95.",
        )


PARTS = {name: kind for name, kind in get_type_hints(Config).items() if hasattr(kind, "__dataclass_fields__")}


def read_config(path: Path) -> Config:
    """A configuration from a file; a relative path of the data counts from the folder of the file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"configuration {path}",
            got=f"{type(error).__name__}: {error}",
            expected="a readable file in TOML",
            fix="Every run leaves one behind, run/config.toml, which can be copied and changed.",
        ) from error
    known = [item.name for item in fields(Config)]
    _refuse_unknown(content, known, f"configuration {path}", "[{}]")
    given: dict[str, Any] = {}
    for name, kind in PARTS.items():
        given[name] = _part(kind, content.get(name, {}), f"{path}, [{name}]")
    made_with = content.get("made_with", {})
    _require_type(isinstance(made_with, dict), f"{path}, [made_with]", made_with, "a table")
    config = Config(**given, made_with={str(key): str(value) for key, value in made_with.items()})
    whole = [absolute(item, path.parent) if item else item for item in config.data.paths]
    return config.changed("data", path=whole if isinstance(config.data.path, list) else whole[0])


def write_config(config: Config, path: Path) -> None:
    """The whole configuration, defaults included."""
    content = {
        name: {key: value for key, value in part.items() if value is not None} for name, part in asdict(config).items()
    }
    path.write_bytes(tomli_w.dumps(content).encode())


def versions() -> dict[str, str]:
    """What the bits of a run depend on, beside its configuration."""
    names = ("coreset-mcmc", "jax", "jaxlib", "numpy", "blackjax", "formulae", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def _part(kind: type, content: Any, subject: str) -> Any:
    _require_type(isinstance(content, dict), subject, content, "a table")
    hints = get_type_hints(kind)
    _refuse_unknown(content, list(hints), subject, "{}")
    return kind(**{name: _value(hints[name], value, f"{subject} {name}") for name, value in content.items()})


def _value(hint: Any, value: Any, subject: str) -> Any:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if isinstance(value, list) and list[str] in kinds:
        _require_type(all(isinstance(item, str) for item in value), subject, value, "a list of texts")
        return value
    kinds = tuple(kind for kind in kinds if kind != list[str])
    if hint == dict[str, str]:
        is_right = isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
        _require_type(is_right, subject, value, "a table of texts")
        return value
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    is_right = any(isinstance(value, kind) and (kind is bool or not isinstance(value, bool)) for kind in kinds)
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    _require_type(is_right, subject, value, " or ".join(names[kind] for kind in kinds if kind in names))
    return value


def _require_type(is_right: bool, subject: str, value: Any, expected: str) -> None:
    fix = "Mind the quotes: TOML puts them around text only."
    require(is_right, subject, got=repr(value), expected=expected, fix=fix)


def _refuse_unknown(content: Mapping[str, Any], known: list[str], subject: str, form: str) -> None:
    unknown = [name for name in content if name not in known]
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=1)
        raise InputError(
            subject,
            got=f"the unknown key {form.format(unknown[0])}",
            expected=f"one of {', '.join(known)}",
            fix=f"Did you mean {form.format(close[0])}?" if close else "Remove it.",
        )
