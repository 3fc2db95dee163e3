"""Bayesian coresets by Markov chain Monte Carlo.

A coreset is a small weighted subset of rows whose posterior stands in for the full one. ``fit`` goes from a model and
data to draws; the modules below hold the parts that can be exchanged. Names are in ``__init__.pyi``, which type
checkers read; each is imported when it is first used.
"""

from importlib.metadata import version

import lazy_loader

from coreset_mcmc.core import quiet_compiler  # noqa: F401 - before anything that imports JAX

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("coreset-mcmc")
