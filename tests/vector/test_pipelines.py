"""Random filters and windows of one stream, several at a time over several batches: all equal to DuckDB's answers."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from tests.vector.running import answer, as_input, filtered, fragment, pipelines, windowed

from towpath.lab.testing.queries import random_shape
from towpath.lab.testing.recording import Recording, random_recording
from towpath.lab.testing.workload import database_of
from towpath.plan.slots import fits
from towpath.schema import Stream
from towpath.verify import differences, expected

DRAWN = 40  # queries of a recording


def batches(rng: Random, recording: Recording, members: list[Stream]) -> list[pa.Table]:
    """What arrived on the streams of a class, phase by phase, and cut somewhere."""
    found = []
    for chunk in recording.chunks:
        names = members[0].schema_class
        columns = [name for name, _ in names if name]
        rows = pa.concat_tables([as_input(chunk[s.name].select(columns), s) for s in members])
        cut = rng.randint(0, rows.num_rows)
        found += [rows.slice(0, cut), rows.slice(cut)]
    return found


def wrong(seed: int) -> list[str]:
    rng = Random(seed)
    recording = random_recording(rng)
    recording = Recording(recording.catalog, recording.chunks)
    catalog = recording.catalog
    drawn = {}
    while len(drawn) < DRAWN:
        sql = random_shape(rng, catalog).text(rng.randrange(1000))
        query, (first, *others) = pipelines(sql, catalog)
        if not others and fits(first):
            drawn[len(drawn) + 1] = sql, query, first
    found = []
    database = database_of(recording)
    for name in dict.fromkeys(s.schema_class for s in catalog.values()):
        members = [s for s in catalog.values() if s.schema_class == name]
        arrived = batches(rng, recording, members)
        mine = {n: d for n, d in drawn.items() if d[2].sources[0].schema_class == name}
        for run, has_window in ((filtered, False), (windowed, True)):
            chosen = {n: d for n, d in mine.items() if (d[2].window is not None) is has_window}
            log = run([fragment(n, p) for n, (_, _, p) in chosen.items()], arrived)
            for n, (sql, query, pipeline) in chosen.items():
                difference = differences(expected(database, query, catalog), answer(log, n, pipeline))
                if difference is not None:
                    found.append(f"{sql}\n{difference}")
    return found


@pytest.mark.parametrize("seed", range(4))
def test_random_pipelines(seed: int) -> None:
    found = wrong(seed)
    assert not found, "\n\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_pipelines(seed: int) -> None:
    found = wrong(seed)
    assert not found, "\n\n".join(found)
