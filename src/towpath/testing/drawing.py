"""Draws whole workloads: streams with all that can befall them, queries that come, change and go, and edits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from towpath.schema import Catalog
from towpath.testing.edits import with_edits
from towpath.testing.late import first_late_phase, with_late_rows
from towpath.testing.queries import random_shape
from towpath.testing.recording import Recording, random_recording
from towpath.testing.shapes import Shape
from towpath.testing.silence import in_turns
from towpath.testing.workload import Workload, counting, named, plain_submission, random_submission

MOST_QUERIES = 40


def random_streams(rng: Random) -> Recording:
    """A recording: plain, with late rows, or with streams that are silent in turns."""
    recording = random_recording(rng)
    kind = rng.randint(0, 6)
    if kind < 2:
        return recording
    return with_late_rows(rng, recording) if kind < 6 else in_turns(rng, recording)


def plain_workload(seed: int) -> Workload:
    """For tests that disturb the job: nothing is late, and queries only come and go."""
    rng = Random(seed)
    recording = random_recording(rng)
    shapes = [random_shape(rng, recording.catalog) for _ in range(rng.randint(1, MOST_QUERIES // 2))]
    count, phases = rng.randint(1, MOST_QUERIES), len(recording.chunks)
    return Workload(recording, named([plain_submission(rng, rng.choice(shapes), phases) for _ in range(count)]))


def example_workload(seed: int, shape: Callable[[Random, Catalog], Shape] = random_shape) -> Workload:
    """The workload of a seed: always the same one."""
    rng = Random(seed)
    recording = random_streams(rng)
    shapes = [shape(rng, recording.catalog) for _ in range(rng.randint(1, MOST_QUERIES // 2))]
    calm = first_late_phase(recording)
    submissions = [random_submission(rng, shapes, recording, calm) for _ in range(rng.randint(1, MOST_QUERIES))]
    return with_edits(rng, Workload(recording, named(submissions) | counting(recording)))
