"""Chance by counting: what happens to a tuple depends on its key and nothing else (SplitMix64).

So a tuple has the same fate wherever an operator sits, and whatever else happens in the simulation.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numba import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53

FATE, SERVICE, GAP = np.uint64(1), np.uint64(2), np.uint64(3)  # what a number is drawn for
FIRST = np.uint64(2**63)  # no tuple has this number

FIXED, EXPONENTIAL, UNIFORM = 0, 1, 2  # distributions of mean 1


def seed_of(name: str, seed: int) -> int:
    """Of a stream or a signature: the same in every process."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "little")


@njit(cache=True)
def mix(key: np.uint64, counter: np.uint64) -> np.uint64:
    z = key + (counter + np.uint64(1)) * _STEP
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@njit(cache=True)
def unit(key: np.uint64) -> float:
    """In [0, 1)."""
    return np.float64(key >> _11) * _UNIT


@njit(cache=True)
def drawn(kind: int, key: np.uint64) -> float:
    if kind == EXPONENTIAL:
        return -math.log(1.0 - unit(key))
    if kind == UNIFORM:
        return 2.0 * unit(key)
    return 1.0
