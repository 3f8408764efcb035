"""What people read in the journal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from towpath.control.journal.journal import Journal
from towpath.control.state.history import EventKind, event_text, places_in
from towpath.control.state.records import BEGINNING_US

from .world import SECOND, World, submission


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite", ("a", "b"))


def at(*seconds: float) -> list[int]:
    return [int(s * SECOND) for s in seconds]


def moved(world: World) -> None:
    """The query q moves from a to b while another one runs."""
    world.submit(submission("q", "filter"), submission("other", "window"))
    world.batch("c0", at(1, 10))
    world.move("q", "b")
    world.batch("c2", at(1, 10))
    for second in (11, 30, 31):
        world.batch("c0", at(second))


def kinds(world: World, **wanted: object) -> list[str]:
    return [str(entry.kind) for entry in world.journal.history(**wanted)]  # type: ignore[arg-type]


def test_a_move_is_reported_step_by_step_with_reason_and_fence(world: World) -> None:
    moved(world)
    entry = [t for t in world.journal.history() if t.kind.startswith("move")]
    assert [t.kind for t in entry] == [
        EventKind.MOVE_BEGUN,
        EventKind.MOVE_FENCED,
        EventKind.MOVE_PASSED,
        EventKind.MOVE_DRAINED,
    ]
    (move,) = world.controller.state.moves.values()
    fence = event_text(move.fence_us)
    assert [t.text for t in entry] == [
        "fragment 1 (q) sets out from a to b: asked for",
        f"fragment 1 has caught up on b; fence 1 at {fence}",
        f"fragment 1 in carrier c0 on a answers for what begins before {fence}, "
        "fragment 3 in carrier c2 on b for the rest",
        "fragment 1 is done on a; on b it is fragment 3",
    ]
    assert {t.nodes for t in entry} == {("a", "b")}


def test_entries_say_where_fragments_were(world: World) -> None:
    moved(world)
    world.withdraw("q")
    told = {entry.kind: places_in(entry.text) for entry in world.journal.history() if entry.query != "other"}
    assert told[EventKind.SUBMITTED] == [(1, "c0", "a")]
    assert told[EventKind.MOVE_PASSED] == [(1, "c0", "a"), (3, "c2", "b")]
    assert told[EventKind.WITHDRAWN] == [(3, "c2", "b")]


def test_a_query_and_the_fragments_that_answered_it(world: World) -> None:
    moved(world)
    world.withdraw("q")
    assert kinds(world, query="q") == [
        "submitted",
        "move begun",
        "move fenced",
        "move passed",
        "move drained",
        "withdrawn",
    ]
    assert kinds(world, query="other") == ["submitted"]
    assert kinds(world, query="nobody") == []


def test_a_node(world: World) -> None:
    moved(world)
    assert kinds(world, node="b") == [
        "move begun",
        "carrier started",
        "move fenced",
        "move passed",
        "move drained",
    ]


def test_the_newest_and_what_came_after(world: World) -> None:
    moved(world)
    everything = world.journal.history()
    assert [t.number for t in everything] == sorted(t.number for t in everything)
    assert world.journal.history(limit=2) == everything[-2:]
    assert world.journal.history(after=everything[2].number) == everything[3:]


def test_the_journal_has_the_clock(world: World) -> None:
    before = time.time_ns() // 1000
    world.submit(submission("q", "filter"))
    stamps = [t.at_us for t in world.journal.history()]
    assert stamps and all(before <= us <= time.time_ns() // 1000 for us in stamps)
    assert world.journal.history(since_us=before) and not world.journal.history(since_us=stamps[-1] + 1)


def test_what_was_not_saved_did_not_happen(world: World) -> None:
    world.submit(submission("q", "filter"))
    world.controller.queries.withdraw("q")
    world.crash()
    assert kinds(world) == ["submitted", "carrier started", "carrier started"]
    assert "again" not in world.journal.history()[-1].text  # no micro-batch was heard of


def test_a_reader_sees_it_while_the_job_runs(world: World, tmp_path: Path) -> None:
    reader = Journal(tmp_path / "journal.sqlite", read_only=True)
    world.submit(submission("q", "filter"))
    assert reader.history() == world.journal.history() != []


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (None, "the beginning"),
        (BEGINNING_US + 1, "the beginning"),
        (0, "1970-01-01 00:00:00.000"),
        (1_500, "1970-01-01 00:00:00.001"),
    ],
)
def test_event_times_for_people(us: int | None, text: str) -> None:
    assert event_text(us) == text
