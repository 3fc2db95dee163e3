"""A compiled Stan program and its data.

``httpstan``, the machinery of PyStan, brings Stan's compiler and C++ headers as a wheel; the C++ compiler is that of
the machine. A compiled program is kept in the cache of httpstan and takes any data, so it is called with some of the
rows at a time. Stan's own exceptions at a position mean that the position is impossible.
"""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.interop.installed import require_library

MOST_PARAMETERS = 2_000


_STANS_THREAD = ThreadPoolExecutor(1, thread_name_prefix="stan")
"""Stan's derivatives live in the thread that has loaded a program, and JAX calls back from threads of its own."""


class InOneThread:
    """The functions of a compiled program, called in the thread that has loaded it."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self.module, name)
        return lambda *arguments: _STANS_THREAD.submit(function, *arguments).result()


def compiled(program: str) -> InOneThread:
    """A program, compiled unless it has been before."""
    require_library("httpstan", "from_stan", extra="stan")
    import httpstan.cache
    import httpstan.models

    name = httpstan.models.calculate_model_name(program)
    folder = httpstan.cache.model_directory(name)
    if not _library_in(folder):
        try:
            with ThreadPoolExecutor(1) as worker:  # a notebook has a loop of its own in this thread
                worker.submit(asyncio.run, httpstan.models.build_services_extension_module(program)).result()
        except Exception as error:  # of stanc, of the C++ compiler, of the linker
            words = [line for line in str(error).strip().splitlines() if line.strip()]
            raise InputError(
                "Stan program",
                got=f"{type(error).__name__} while compiling: {' '.join(words)[:500]}",
                expected="a program that Stan compiles, and a C++ compiler (g++)",
                fix="Check the program with stanc; install a C++ compiler if there is none.",
            ) from error
    return InOneThread(_STANS_THREAD.submit(_loaded, _library_in(folder)[0]).result())


def _library_in(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in EXTENSION_SUFFIXES] if folder.is_dir() else []


def _loaded(library: Path) -> Any:
    """The extension module, from a copy: one that another thread has loaded would stay in that thread."""
    with TemporaryDirectory() as folder:
        copy = shutil.copy(library, folder)
        spec = importlib.util.spec_from_file_location("stan_services", copy)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, eq=False)
class StanProgram:
    """A program with the data that are not rows."""

    services: Any
    shared: Mapping[str, Any]
    sizes: tuple[str, ...]
    """Names of the data that are the number of rows."""
    kinds: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    """Of the data of the rows: Stan tells whole numbers from others."""

    def data(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        """Everything that the data block declares, for some of the rows."""
        arrays = {name: np.asarray(rows[name]).astype(kind) for name, kind in self.kinds.items()}
        count = len(next(iter(arrays.values())))
        return {**self.shared, **dict.fromkeys(self.sizes, count), **arrays}

    def log_density(self, position: np.ndarray, rows: Mapping[str, Any]) -> float:
        """Prior, Jacobians and likelihood of some rows, up to constants."""
        return float(self.services.log_prob(self.data(rows), list(map(float, position)), True))

    def values(self, position: np.ndarray, rows: Mapping[str, Any], *, generated: bool) -> dict[str, np.ndarray]:
        """Parameters and transformed parameters by name, and generated quantities on demand."""
        data = self.data(rows)
        flat = np.asarray(self.services.write_array(data, list(map(float, position)), True, generated))
        found, start = {}, 0
        for name, shape in zip(self.services.get_param_names(data), self.services.get_dims(data), strict=True):
            stop = start + int(np.prod(shape, initial=1))
            if stop > len(flat):
                break
            found[name] = flat[start:stop].reshape(shape, order="F")
            start = stop
        return found

    def unconstrained(self, values: Mapping[str, Any], rows: Mapping[str, Any]) -> np.ndarray:
        """The position of parameters on their own scale."""
        given = {name: np.asarray(value, float) for name, value in values.items()}
        return np.asarray(self.services.transform_inits(self.data(rows), given))

    def num_parameters(self, rows: Mapping[str, Any]) -> int:
        """Found by trying: Stan refuses a position of another length."""
        for count in range(MOST_PARAMETERS):
            try:
                self.services.log_prob(self.data(rows), [0.1] * count, True)
            except RuntimeError as error:
                if "number of parameters does not match" in str(error):
                    continue
            except ValueError:
                pass  # the right length, and an impossible position
            return count
        raise InputError(
            "Stan program",
            got=f"more than {MOST_PARAMETERS} parameters",
            expected=f"at most {MOST_PARAMETERS}",
            fix="A model without gradients cannot be sampled with so many.",
        )
