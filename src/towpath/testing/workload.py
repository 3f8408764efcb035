"""A workload: recorded streams and the standing queries that are submitted and withdrawn while they flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import duckdb

from towpath.schema import Catalog
from towpath.testing.files import read_files, write_file
from towpath.testing.queries import random_shape
from towpath.testing.recording import Recording, random_recording
from towpath.testing.shapes import Shape

MOST_QUERIES = 40


@dataclass(frozen=True)
class Submission:
    """One query, submitted before the chunk of phase `submit` arrives and withdrawn before that of phase `withdraw`."""

    sql: str
    submit: int = 0
    withdraw: int | None = None
    sink: bool = False  # results also go to a folder of their own


@dataclass(frozen=True)
class Workload:
    recording: Recording
    queries: dict[str, Submission]

    def database(self) -> duckdb.DuckDBPyConnection:
        """A new in-memory database with the complete recording, as the oracle wants it.

        What a file means is what DuckDB reads in it.
        """
        con = duckdb.connect()
        for name, stream in self.recording.catalog.items():
            with TemporaryDirectory() as folder:
                file = Path(folder) / f"all.{self.recording.formats.get(name, 'parquet')}"
                write_file(self.recording.complete(name), file)
                con.register(name, read_files(con, [file], stream).to_arrow_table())
        return con


def named(submissions: Sequence[Submission]) -> dict[str, Submission]:
    return {f"q{number:03}": submission for number, submission in enumerate(submissions)}


def random_submission(rng: Random, shapes: Sequence[Shape], phases: int) -> Submission:
    """One of few shapes with one of few sets of constants, so that some queries come out equal."""
    sql = rng.choice(shapes).text(constants=rng.randint(0, 7), twist=max(rng.randint(-3, 3), 0))
    submit = max(rng.randint(-8, phases - 1), 0)
    leaves = submit + 1 < phases and rng.randint(0, 6) == 6
    withdraw = rng.randint(submit + 1, phases - 1) if leaves else None
    return Submission(sql, submit, withdraw, sink=rng.randint(0, 7) == 7)


def example_workload(seed: int, shape: Callable[[Random, Catalog], Shape] = random_shape) -> Workload:
    """The workload of a seed: always the same one."""
    rng = Random(seed)
    recording = random_recording(rng)
    shapes = [shape(rng, recording.catalog) for _ in range(rng.randint(1, MOST_QUERIES // 2))]
    phases = len(recording.chunks)
    submissions = [random_submission(rng, shapes, phases) for _ in range(rng.randint(1, MOST_QUERIES))]
    return Workload(recording, named(submissions))
