"""How far draining takes event time, for windows over windows: as far as the last one that has tuples."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.control.decide.closing import ROUNDED_US, closings
from towpath.control.decide.controller import Submission
from towpath.lang import parse
from towpath.plan.cut import plan
from towpath.schema import LINK, is_link

from .world import CATALOG, SECOND, World, batch_done

COUNTS = "SELECT k, count(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k"
MOST = f"SELECT max(n) AS m FROM ({COUNTS}) [RANGE 20 SECONDS] AS x"
PAIRS = f"SELECT t.k FROM t [RANGE 5 SECONDS] AS t, ({COUNTS}) [RANGE 5 SECONDS] AS x WHERE t.k = x.k"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite")


def submit(world: World, sql: str) -> tuple[str, str]:
    """Returns the carriers of the view and of its reader."""
    query = parse(sql, CATALOG, "q")
    made = plan(query, CATALOG)
    (derived,) = made.derived
    view = Submission(derived.stream.name, sql, derived.columns, (derived.pipeline,), origin=LINK)
    world.submit(view, Submission("q", sql, tuple(c.name for c in query.columns), made.pipelines))
    maker, reader = world.controller.state.carriers
    return maker, reader


def hear(world: World, carrier: str, number: int, *newest_s: float | None) -> None:
    version = world.controller.state.carriers[carrier].version
    newest = [None if s is None else round(s * SECOND) for s in newest_s]
    world.act(world.controller.handle(batch_done(carrier, number, version, newest, first=number == 0)))


def ends_s(world: World) -> set[float]:
    carriers = [c for c in world.controller.state.carriers.values() if c.id in world.controller.known.runs]
    return {closing.end_us / SECOND for closing in closings(carriers, world.controller)}


# The newest row is of second 25: its window of 10 s ends at 30, and the window of 20 s that this falls into at 40.
@pytest.mark.parametrize("read_s", [None, 20.0, 30.0])
def test_results_that_were_read_open_no_further_window_below(world: World, read_s: float | None) -> None:
    maker, reader = submit(world, MOST)
    hear(world, maker, 0, 25.0)
    if read_s is not None:
        hear(world, reader, 0, read_s)
    assert ends_s(world) == {40 + ROUNDED_US / SECOND}


def test_what_was_read_of_a_view_is_closed_whoever_makes_it_now(world: World) -> None:
    """Its maker may have moved, and have read nothing yet."""
    _, reader = submit(world, MOST)
    hear(world, reader, 0, 30.0)
    assert ends_s(world) == {40 + ROUNDED_US / SECOND}


def test_a_stream_that_only_a_reader_of_the_view_reads_counts(world: World) -> None:
    maker, reader = submit(world, PAIRS)
    assert not world.controller.state.carriers[reader].template.family.window
    hear(world, maker, 0, 25.0)
    classes = world.controller.state.carriers[reader].template.family.classes
    (view,) = (n for n, schema_class in enumerate(classes) if is_link(schema_class))
    hear(world, reader, 0, *((25.0, 30.0) if view else (30.0, 25.0)))
    (end_s,) = ends_s(world)
    assert 30 <= end_s < 40
