"""Everything that reads what others wrote, as functions of bytes: they return or say in words what is wrong.

Any other exception is a defect; so is a program that was started or a connection that was opened while reading, which
an audit hook watches for.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray

import coreset_mcmc as cm
from coreset_mcmc.commands.config import read_config
from coreset_mcmc.core.errors import CheckpointError, InputError
from coreset_mcmc.core.plain import plain
from coreset_mcmc.driver.checkpoint import Snapshot, load, save
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.methods.law import Law
from coreset_mcmc.results.build import STAGES
from coreset_mcmc.results.tree import ATTRIBUTE, write_tree
from coreset_mcmc.tables.formula import read_formula
from coreset_mcmc.tables.priors import KINDS, read_prior
from coreset_mcmc.tables.row_filter import read_filter

COLUMNS = ("y", "x", "g", "a b", "log")
FORBIDDEN = (
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "socket.connect",
    "pickle.find_class",
)
"""Events of Python that no reader of a file has any business with."""

Reader = Callable[[bytes], None]


class StartedSomethingError(BaseException):
    """A reader went beyond reading; no ``except Exception`` hides it."""


@cache
def watching() -> list[bool]:
    """Whether the hook is on; a hook cannot be removed, so there is one."""
    state = [False]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if state[0] and event in FORBIDDEN:
            raise StartedSomethingError(event, str(arguments)[:100])

    sys.addaudithook(hook)
    return state


@contextmanager
def only_reading() -> Iterator[None]:
    """Nothing may be started meanwhile."""
    state = watching()
    state[0] = True
    try:
        yield
    finally:
        state[0] = False


@cache
def place() -> Path:
    """A folder for the files that are read."""
    return Path(tempfile.mkdtemp(prefix="coreset-mcmc-fuzz-"))


def formula(content: bytes) -> None:
    """A formula on columns with ordinary and odd names."""
    read_formula(content.decode("utf-8", "replace"), COLUMNS)


def prior(content: bytes) -> None:
    """A prior in words, for every support that a parameter can have."""
    text = content.decode("utf-8", "replace")
    for support in sorted({kind.support for kind in KINDS.values()}):
        with suppress(InputError):
            read_prior(text, "a prior", support)


def row_filter(content: bytes) -> None:
    """A condition on rows."""
    read_filter(content.decode("utf-8", "replace"), COLUMNS)


def config(content: bytes) -> None:
    """A configuration."""
    path = place() / "config.toml"
    path.write_bytes(content)
    read_config(path).check()


def checkpoint(content: bytes) -> None:
    """A checkpoint."""
    path = place() / "training.npz"
    path.write_bytes(content)
    load(path, expected_fingerprint="some")


def run(content: bytes) -> None:
    """The draws of a run."""
    path = place() / "draws.nc"
    path.write_bytes(content)
    cm.load(path)


READERS: dict[str, Reader] = {
    "formula": formula, "prior": prior, "filter": row_filter, "config": config, "checkpoint": checkpoint, "run": run,
}  # fmt: skip


def tried(reader: Reader, content: bytes) -> None:
    """Read; what is told in words is fine."""
    with only_reading(), suppress(InputError, CheckpointError):
        reader(content)


def warmed(name: str) -> Reader:
    """A reader whose libraries have been imported, which may start programs of their own."""
    for content in examples(name):
        with suppress(Exception):
            READERS[name](content)
    return READERS[name]


def examples(name: str) -> list[bytes]:
    """Where to begin: what is right, and what tries to be clever."""
    if name == "formula":
        texts = [
            "y ~ x", "y ~ x * g + np.log(x)", "y ~ 0 + C(g) + bs(x, df=4)", 'g["a"] ~ `a b` + log',
            "{y / 2} ~ (x + g)**2",
            "y ~ __import__('os').system('touch x')", "y ~ x.__class__.__mro__", "y ~ np.load('x')", "y ~ " + "(" * 50,
        ]  # fmt: skip
        return [text.encode() for text in texts]
    if name == "prior":
        texts = ["Normal(0, 1)", "StudentT(nu=3, mu=0, sigma=2.5)", "HalfCauchy(1e3)", "Flat", "Normal(10**10**9, 1)",
                 "__import__('os').system('x')", "Normal(-1, -1)", "Gamma(alpha=2, beta=0.1)"]  # fmt: skip
        return [text.encode() for text in texts]
    if name == "filter":
        texts = ["x > 0", "x in [1, 2] and not g == 'a'", "`a b` != 'c' or y <= -1.5", "x.__class__", "x > " + "(" * 60]
        return [text.encode() for text in texts]
    if name == "config":
        whole = '[data]\npath = "a.parquet"\n[model]\nformula = "y ~ x"\n[sampling]\ndraws = 10\nseed = 1\n'
        return [whole.encode(), b"[data]\npath = 3\n", b"[coreset]\nsize = 'auto'\n[engine]\nname = 'stream'\n", b""]
    return [checkpoint_bytes(), bomb(), b""] if name == "checkpoint" else [run_bytes(), b"\x89HDF\r\n\x1a\n", b""]


def checkpoint_bytes() -> bytes:
    """A small one."""
    path = place() / "example.npz"
    save(path, Snapshot({"fingerprint": "some", "num_steps": 1}, {"state": [np.zeros(3), np.array(1)]}))
    return path.read_bytes()


def run_bytes() -> bytes:
    """The file of a fit, as small as it gets."""
    cost = plain(Cost.of())
    header = {
        "law": Law.CORESET.value, "kl_estimate": 0.1, "numbers": [], "settings": {"method": "none"}, "position": "x",
        "costs": dict.fromkeys(STAGES, cost),
    }  # fmt: skip
    tree = xarray.DataTree.from_dict({"posterior": xarray.Dataset({"x": (("chain", "draw"), np.zeros((1, 4)))})})
    tree.attrs[ATTRIBUTE] = json.dumps(header)
    return write_tree(tree, place() / "example.nc").read_bytes()


def bomb() -> bytes:
    """An archive whose array claims a million million numbers."""
    stream, inner = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(inner, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    header = np.frombuffer(json.dumps({"format": 1, "fingerprint": "some"}).encode(), np.uint8)
    np.savez(stream, header=header)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("state/0.npy", inner.getvalue())
    return stream.getvalue()
