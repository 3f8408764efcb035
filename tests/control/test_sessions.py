"""Sessions: nobody knows how long they last, so they end where they began."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.control.decide.controller import Submission
from towpath.control.state.records import FragmentStatus
from towpath.errors import MoveRefused, NodeRefused
from towpath.lang import parse
from towpath.plan.cut import plan

from .world import CATALOG, DELAY, SECOND, World, submission

SQL = "SELECT k, count(*) AS n FROM s [SESSION 4 SECONDS] GROUP BY k"
OTHER = "SELECT k, sum(v) AS n FROM s [SESSION 4 SECONDS] GROUP BY k"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite", ("a", "b"))


def sessions(sql: str = SQL) -> Submission:
    query = parse(sql, CATALOG, "q")
    return Submission("q", sql, tuple(c.name for c in query.columns), plan(query, CATALOG).pipelines)


def running(world: World) -> None:
    world.submit(sessions())
    for second in (1, 10):
        world.batch("c0", [second * SECOND])


def test_they_do_not_move(world: World) -> None:
    running(world)
    with pytest.raises(MoveRefused, match=r"nobody knows how long they last.*withdraw q and submit it again"):
        world.move("q", "b")
    with pytest.raises(NodeRefused, match=r"node a has sessions, which cannot move; withdraw them first: q"):
        world.controller.draining.begin("a")
    assert not world.controller.known.draining("a")
    world.act(world.controller.draining.begin("b"))


def test_what_is_withdrawn_sees_the_end_of_its_last_session(world: World) -> None:
    running(world)
    world.withdraw("q")
    part = world.part("q")
    assert (part.until_us, part.ceded_us) == (10 * SECOND + 1, None)
    # A row at that very time would belong to a session that ends then, so it has to be in.
    for milliseconds, status in ((0, FragmentStatus.LIVE), (1, FragmentStatus.LEAVING)):
        world.batch("c0", [10 * SECOND + DELAY + milliseconds * 1000])
        assert world.controller.state.fragments[1].status is status, milliseconds


def test_a_version_that_is_replaced_has_what_is_over_when_the_next_one_begins(world: World) -> None:
    running(world)
    world.submit(sessions(OTHER), submission("beside", "window"))
    for second in (20, 30):
        for name in list(world.carriers):
            world.batch(name, [second * SECOND])
    old, new = (part for (query, *_), part in sorted(world.everything.parts.items()) if query in (1, 2))
    assert old.ceded_us is None
    assert old.until_us == new.from_us
    assert new.settled


def test_the_end_is_decided_anew_when_the_next_version_leaves_before_it_began(world: World) -> None:
    running(world)
    world.submit(sessions(OTHER))
    world.withdraw("q")
    old = world.everything.parts[1, 0, 0]
    assert (old.ceded_us, old.until_us) == (None, 10 * SECOND + 1)
