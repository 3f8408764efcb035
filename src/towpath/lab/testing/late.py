"""Rows that come too late: drawn so that the borders of micro-batches make no difference, and found by the model.

All rows of a phase have been read before those of the next arrive. Where the borders between micro-batches lie within a
phase depends on the moment; a late row is therefore one that is late by what the phases before had, and a row that is
not late for a join, because another input is behind, is one that stays in time to the end of its own phase.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pyarrow as pa

from towpath.arrow import ARROW
from towpath.lab.testing.lateness import Lateness, ModelFeed
from towpath.lab.testing.recording import SECOND, Recording
from towpath.schema import SchemaClass, Type

MOST_LATE = 3  # in a chunk
BEHIND = (1, 1_000, 400_000, 2 * SECOND, 7 * SECOND)  # microseconds before the oldest time that is in time


def cuts(recording: Recording, classes: Iterable[SchemaClass]) -> list[int | None]:
    """For each phase, and the end: rows from before then are late for who reads streams of these classes together."""
    read = [[s for s in recording.catalog.values() if s.schema_class == one] for one in classes]
    lateness = Lateness(*(max(s.delay_us for s in streams) for streams in read))
    feeds = [ModelFeed([s.name for s in streams]) for streams in read]
    found = [lateness.cut_us]
    for phase in range(len(recording.chunks)):
        released = [
            feed.take({s.name: recording.times(phase, s.name) for s in streams})
            for feed, streams in zip(feeds, read, strict=True)
        ]
        lateness.take(*([time for times in of.values() for time in times] for of in released))
        found.append(lateness.cut_us)
    return found


def without_late(recording: Recording, classes: Iterable[SchemaClass]) -> Recording:
    """What joins and aggregates over these classes answer for. Rows that a feed holds back are ahead, never late."""
    wanted = set(classes)
    bounds = cuts(recording, wanted)
    chunks = []
    for phase, chunk in enumerate(recording.chunks):
        cut = bounds[phase]
        kept = {
            name: np.array([cut is None or time >= cut for time in recording.times(phase, name)], bool)
            for name in chunk
            if recording.catalog[name].schema_class in wanted
        }
        chunks.append(
            {name: table.filter(pa.array(kept[name])) if name in kept else table for name, table in chunk.items()}
        )
    return replace(recording, chunks=tuple(chunks))


def late_rows(recording: Recording) -> dict[str, int]:
    """By stream, for an aggregate, which waits for no other class."""
    found = {}
    for name, stream in recording.catalog.items():
        late = (
            recording.complete(name).num_rows - without_late(recording, [stream.schema_class]).complete(name).num_rows
        )
        if late:
            found[name] = late
    return found


def first_late_phase(recording: Recording) -> int:
    """Before it no row is late; the number of phases if none is at all."""
    read = [without_late(recording, [stream.schema_class]) for stream in recording.catalog.values()]
    for phase, chunk in enumerate(recording.chunks):
        if any(of.chunks[phase][name].num_rows < table.num_rows for of in read for name, table in chunk.items()):
            return phase
    return len(recording.chunks)


def with_late_rows(rng: Random, recording: Recording) -> Recording:
    """Rows of earlier phases come again, too late for aggregates, and for joins unless another stream is behind."""
    classes = sorted({stream.schema_class for stream in recording.catalog.values()})
    sets = [together for size in range(len(classes)) for together in combinations(classes, size + 1)]
    bounds = {together: cuts(recording, together) for together in sets}
    chunks = [dict(chunk) for chunk in recording.chunks]
    for phase in range(rng.randint(1, len(chunks) - 1), len(chunks)):
        for name, stream in recording.catalog.items():
            met = [(b[phase], b[phase + 1]) for together, b in bounds.items() if stream.schema_class in together]
            cut = bounds[stream.schema_class,][phase]
            if cut is not None and rng.randint(0, 1):
                # At the edge of what is late for an aggregate, and of what stays in time for a join.
                edges = [cut - behind for behind in BEHIND] + [end for _, end in met if end is not None and end < cut]
                times = [rng.choice(edges) for _ in range(rng.randint(1, MOST_LATE))]
                certain = [time for time in times if all(_certain(time, *bound) for bound in met)]
                chunks[phase][name] = _mixed_in(rng, recording, phase, name, certain)
    return replace(recording, chunks=tuple(chunks))


def _certain(time_us: int, before_us: int | None, after_us: int | None) -> bool:
    """Whether a row is late, or in time, wherever the borders of a phase's micro-batches are."""
    late = before_us is not None and time_us < before_us
    return late or after_us is None or time_us >= after_us


def _mixed_in(rng: Random, recording: Recording, phase: int, name: str, times: list[int]) -> pa.Table:
    """The chunk of a stream with rows of these times in random places; their values are those of earlier rows."""
    chunk, stream = recording.chunks[phase][name], recording.catalog[name]
    earlier = pa.concat_tables([before[name] for before in recording.chunks[:phase]])
    late = earlier.take(pa.array([rng.randrange(earlier.num_rows) for _ in times], pa.int64()))
    position = late.schema.get_field_index(stream.time)
    late = late.set_column(position, stream.time, pa.array(times, ARROW[Type.TIMESTAMP]))
    table = pa.concat_tables([chunk, late])
    order = list(range(chunk.num_rows))
    for number in range(late.num_rows):
        order.insert(rng.randint(0, len(order)), chunk.num_rows + number)
    return table.take(pa.array(order, pa.int64()))
