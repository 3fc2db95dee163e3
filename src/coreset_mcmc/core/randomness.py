"""Keys of JAX and random numbers on the host, without a program: compiling one takes longer than all of this.

Keys are split and folded as JAX does it, by the block cipher Threefry-2x32 with 20 rounds (Salmon et al. 2011): the
key number i is the encrypted number i.
"""

from __future__ import annotations

import jax
import numpy as np

from coreset_mcmc.core.types import Key

THREEFRY = "threefry2x32"
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
NUM_GROUPS = 5
"""Of four rounds each."""


def key_of(seed: int) -> Key:
    """The same as ``jax.random.key(seed)``, for seeds of 64 bits in any precision."""
    high, low = divmod(seed % 2**64, 2**32)
    return _wrapped(np.array([high, low], np.uint32))


def split(key: Key, count: int = 2) -> list[Key]:
    """The same keys as ``jax.random.split``."""
    if not _is_threefry(key):
        return list(jax.random.split(key, count))
    return [_wrapped(words) for words in _encrypted(_words(key), np.arange(count, dtype=np.uint32))]


def fold_in(key: Key, number: int) -> Key:
    """The same key as ``jax.random.fold_in``."""
    if not _is_threefry(key):
        return jax.random.fold_in(key, number)
    return _wrapped(_encrypted(_words(key), np.array([number % 2**32], np.uint32))[0])


def generator_of(key: Key) -> np.random.Generator:
    """A NumPy generator; drawing from it compiles nothing."""
    return np.random.default_rng(_words(key).astype(np.uint64))


def _is_threefry(key: Key) -> bool:
    return str(jax.random.key_impl(key)) == THREEFRY


def _words(key: Key) -> np.ndarray:
    return np.asarray(jax.random.key_data(key))


def _wrapped(words: np.ndarray) -> Key:
    key: Key = jax.random.wrap_key_data(jax.device_put(words), impl=THREEFRY)
    return key


def _encrypted(key: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """(n, 2) words, of the numbers (n,) with high words of zero."""
    first, second = key
    schedule = (first, second, first ^ second ^ PARITY)
    with np.errstate(over="ignore"):
        left, right = np.zeros_like(numbers) + schedule[0], numbers + schedule[1]
        for group in range(NUM_GROUPS):
            for rotation in ROTATIONS[group % 2]:
                left = left + right
                right = (right << np.uint32(rotation)) | (right >> np.uint32(32 - rotation))
                right = right ^ left
            left = left + schedule[(group + 1) % 3]
            right = right + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return np.stack([left, right], axis=-1)
