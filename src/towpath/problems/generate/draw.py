"""What several generators draw."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray


def zipf(rng: Generator, number: int, theta: float) -> NDArray[np.float64]:
    """The probability of each of `number` things: 1 / rank^theta, the ranks dealt at random; theta 0 is uniform."""
    weights = np.arange(1, number + 1, dtype=np.float64) ** -theta
    return rng.permutation(weights / weights.sum())


def some(rng: Generator, probabilities: NDArray[np.float64], number: int) -> list[int]:
    """Different things, the likely ones first more often."""
    return [int(n) for n in rng.choice(len(probabilities), size=number, replace=False, p=probabilities)]


def spread(rng: Generator, total: int, places: int, least: int) -> list[int]:
    """`total` as a sum of `places` parts of at least `least`, what is above that dealt at random."""
    extra = rng.multinomial(total - least * places, [1 / places] * places)
    return [least + int(n) for n in extra]
