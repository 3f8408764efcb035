"""Draws whole workloads: streams with all that can happen to them, queries that come, change and go, and edits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from towpath.lab.testing.edits import with_edits
from towpath.lab.testing.late import first_late_phase, with_late_rows
from towpath.lab.testing.queries import MOST_QUERIES, random_shape, random_shape_over_tables, random_shapes
from towpath.lab.testing.recording import Recording, random_recording, with_tables
from towpath.lab.testing.shapes import Shape
from towpath.lab.testing.silence import in_turns
from towpath.lab.testing.workload import Workload, counting, named, plain_submission, random_submission, with_carriers
from towpath.schema import Catalog


def random_streams(rng: Random) -> Recording:
    """A recording: plain, with late rows, or with streams that are silent in turns."""
    recording = random_recording(rng)
    kind = rng.randint(0, 6)
    if kind < 2:
        return recording
    return with_late_rows(rng, recording) if kind < 6 else in_turns(rng, recording)


def plain_workload(seed: int, shape: Callable[[Random, Catalog], Shape] = random_shape) -> Workload:
    """For tests that disturb the job: nothing is late, and queries only come and go."""
    rng = Random(seed)
    recording = random_recording(rng)
    shapes = random_shapes(rng, recording.catalog, shape)
    count, phases = rng.randint(1, MOST_QUERIES), len(recording.chunks)
    submissions = [plain_submission(rng, rng.choice(shapes), phases) for _ in range(count)]
    return with_carriers(rng, Workload(recording, named(submissions)))


def workload_over_tables(seed: int) -> Workload:
    """Queries that look rows up in reference tables, and come and go."""
    rng = Random(seed)
    recording = with_tables(rng, random_recording(rng))
    tables = {name: known for name, known in recording.known.items() if known.is_table}
    shapes = random_shapes(rng, recording.catalog, partial(random_shape_over_tables, tables=tables))
    count, phases = rng.randint(1, MOST_QUERIES), len(recording.chunks)
    submissions = [plain_submission(rng, rng.choice(shapes), phases) for _ in range(count)]
    return with_carriers(rng, Workload(recording, named(submissions)))


def example_workload(seed: int, shape: Callable[[Random, Catalog], Shape] = random_shape) -> Workload:
    """The workload of a seed: always the same one."""
    rng = Random(seed)
    recording = random_streams(rng)
    shapes = random_shapes(rng, recording.catalog, shape)
    calm = first_late_phase(recording)
    submissions = [random_submission(rng, shapes, recording, calm) for _ in range(rng.randint(1, MOST_QUERIES))]
    workload = with_edits(rng, Workload(recording, named(submissions) | counting(recording)))
    return with_carriers(rng, workload)
