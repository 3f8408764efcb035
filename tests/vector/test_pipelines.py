"""Random filters, windows and joins, several at a time over several batches: all equal to DuckDB's answers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pytest
from tests.vector.running import answer, as_input, filtered, fragment, kept, met, pipelines, windowed

from towpath.lab.testing.queries import random_shape, random_shape_of_first_rows
from towpath.lab.testing.recording import Recording, random_recording
from towpath.lab.testing.shapes import Shape
from towpath.lab.testing.workload import database_of
from towpath.lang.query import Query
from towpath.plan.pipeline import Pipeline
from towpath.plan.slots import fits
from towpath.plan.templates import Template, universal_for
from towpath.schema import Catalog, Stream
from towpath.vector.joins import JoinedPairs
from towpath.verify import differences, expected

DRAWN = 40  # queries of a recording

Drawing = Callable[[Random, Catalog], Shape]


class Drawn(NamedTuple):
    sql: str
    query: Query
    pipeline: Pipeline


def batches(rng: Random, recording: Recording, members: list[Stream], alias: str) -> list[pa.Table]:
    """What arrived on the streams of a class, phase by phase, and cut somewhere."""
    found = []
    for chunk in recording.chunks:
        names = members[0].schema_class
        columns = [name for name, _ in names if name]
        rows = pa.concat_tables([as_input(chunk[s.name].select(columns), s, alias) for s in members])
        cut = rng.randint(0, rows.num_rows)
        found += [rows.slice(0, cut), rows.slice(cut)]
    return found


def draw(rng: Random, catalog: Catalog, shape: Drawing) -> dict[int, Drawn]:
    drawn: dict[int, Drawn] = {}
    while len(drawn) < DRAWN:
        sql = shape(rng, catalog).text(rng.randrange(1000))
        query, (first, *others) = pipelines(sql, catalog)
        if not others and fits(first):
            drawn[len(drawn) + 1] = Drawn(sql, query, first)
    return drawn


def log_of(rng: Random, template: Template, mine: dict[int, Drawn], recording: Recording) -> pa.Table:
    """What the fragments of one universal carrier put out."""
    fragments = [fragment(n, drawn.pipeline) for n, drawn in mine.items()]
    run = windowed if template.family.window else filtered
    arrived = []
    for n, name in enumerate(template.family.classes):
        members = [s for s in recording.catalog.values() if s.schema_class == name]
        arrived.append(batches(rng, recording, members, f"i{n}"))
    if len(arrived) == 1:
        return run(fragments, arrived[0])
    pairs = met(*kept(fragments, arrived))
    cut = rng.randint(0, pairs.num_rows)
    return run(fragments, [pairs.slice(0, cut), pairs.slice(cut)], JoinedPairs)


def wrong(seed: int, shape: Drawing = random_shape) -> list[str]:
    rng = Random(seed)
    recording = random_recording(rng)
    recording = Recording(recording.catalog, recording.chunks)
    catalog = recording.catalog
    carriers: dict[Template, dict[int, Drawn]] = {}
    for number, drawn in draw(rng, catalog, shape).items():
        template = universal_for(drawn.pipeline)
        assert template is not None, drawn.sql
        carriers.setdefault(template, {})[number] = drawn
    found = []
    database = database_of(recording)
    for template, mine in carriers.items():
        log = log_of(rng, template, mine, recording)
        for number, drawn in mine.items():
            difference = differences(expected(database, drawn.query, catalog), answer(log, number, drawn.pipeline))
            if difference is not None:
                found.append(f"{drawn.sql}\n{difference}")
    return found


@pytest.mark.parametrize("seed", range(4))
def test_random_pipelines(seed: int) -> None:
    found = wrong(seed)
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("seed", range(2))
def test_first_rows_of_random_pipelines(seed: int) -> None:
    found = wrong(seed, random_shape_of_first_rows)
    assert not found, "\n\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_pipelines(seed: int) -> None:
    found = wrong(seed) + wrong(seed, random_shape_of_first_rows)
    assert not found, "\n\n".join(found)
