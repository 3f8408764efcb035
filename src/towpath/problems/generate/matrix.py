"""Latencies that were measured: a matrix of round-trip times, or a numbered series of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from towpath.config.settings import Number, Settings, Whole
from towpath.placement.cluster import Cluster, Network, Node

Latencies = NDArray[np.float32]

_NUMBER = re.compile(r"(.*?)(\d+)")


class Matrix(Settings):
    path: str = Field(examples=["rtt.txt"])
    slice: Whole = Field(1, ge=1)  # which of a series, when the path is a folder
    cpu: Number = Field(1.0, gt=0)


def matrix(parameters: Matrix, folder: Path) -> Cluster:
    """A node for every row. Raises ValueError for what is no such matrix."""
    path = folder / parameters.path
    if path.is_dir():
        files = series(path)
        if parameters.slice > len(files):
            raise ValueError(f"{path} holds {len(files)} numbered files, so there is no slice {parameters.slice}")
        path = files[parameters.slice - 1]
    latencies = read(path)
    nodes = tuple(Node(f"n{n}", parameters.cpu) for n in range(1, len(latencies) + 1))
    return Cluster(nodes, Network(latencies=latencies))


def series(folder: Path) -> list[Path]:
    """The files of time slices, by the number at the end of their names."""
    numbered = [(match, file) for file in folder.iterdir() if (match := _NUMBER.fullmatch(file.stem))]
    return [file for _, file in sorted(numbered, key=lambda pair: (int(pair[0][2]), pair[1].name))]


def slices(folder: Path) -> Iterator[Latencies]:
    for file in series(folder):
        yield read(file)


def read(path: Path) -> Latencies:
    """Seconds one way, NaN where unknown, from round-trip times in milliseconds (or, .npy, as they are).

    Zero, negative or NaN off the diagonal means unknown. Raises ValueError for what is no square matrix of numbers.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        if path.suffix == ".npy":
            found = np.load(path, allow_pickle=False).astype(np.float32)
        else:
            found = (np.loadtxt(path, dtype=np.float64, ndmin=2) / 2_000).astype(np.float32)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ValueError(f"{path} is no matrix of numbers: {error}") from error
    if found.ndim != 2 or found.shape[0] != found.shape[1]:
        raise ValueError(f"{path} is not square: {' x '.join(map(str, found.shape))}")
    known = found > 0
    if path.suffix == ".npy":
        known |= found == 0  # written by towpath itself, where 0 is a latency
    latencies: Latencies = np.where(known, found, np.float32(np.nan))
    np.fill_diagonal(latencies, 0.0)
    return latencies
