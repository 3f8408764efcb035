"""A fragment changes hands between two nodes: one step at a time, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.config.settings import BEGINNING, Start
from towpath.control.decide.controller import Submission
from towpath.control.state.fence import MoveStep
from towpath.control.state.records import FragmentStatus, MoveRecord
from towpath.errors import MoveRefused, TowpathError
from towpath.lang import parse
from towpath.plan.cut import plan

from .world import CATALOG, DELAY, SECOND, World, losses, submission

NODES = ("a", "b")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite", NODES)


def at(*seconds: float) -> list[int]:
    return [int(s * SECOND) for s in seconds]


def moving(world: World, kind: str = "filter", start: Start = BEGINNING) -> MoveRecord:
    """A query that has seen ten seconds on node a, and is on its way to b, where the carrier has caught up."""
    world.submit(submission("q", kind, start=start))
    world.batch("c0", at(1, 5))
    world.batch("c0", at(9, 10))
    world.move("q", "b")
    (move,) = world.controller.state.moves.values()
    world.batch("c1", at(1, 5, 9, 10))
    return move


def test_it_changes_hands_at_the_fence(world: World) -> None:
    move = moving(world)
    assert move.step is MoveStep.FENCED and move.fence_us is not None and move.fence_us > 10 * SECOND
    assert world.part("q").pending_fence_us == move.fence_us
    world.batch("c0", at(11))
    assert move.step is MoveStep.DRAINING
    before, now = world.turns("q")
    assert (before.handed_over_us, before.pending_fence_us) == (move.fence_us, None)
    assert (now.from_us, now.fragment) == (move.fence_us, move.target)


def test_a_query_that_begins_behind_the_fence_begins_there_all_the_same(world: World) -> None:
    move = moving(world, start=Start(100 * SECOND))
    world.batch("c0", at(11))
    before, now = world.turns("q")
    assert move.fence_us is not None and move.fence_us < 100 * SECOND
    assert (before.from_us, now.from_us) == (100 * SECOND, 100 * SECOND)


def test_the_source_stays_until_it_has_seen_what_it_owes(world: World) -> None:
    move = moving(world, "window")
    world.batch("c0", at(11))
    assert move.fence_us is not None
    owed = (move.fence_us + 4 * SECOND + DELAY) / SECOND
    world.batch("c0", at(owed - 1))
    assert move.step is MoveStep.DRAINING
    world.batch("c0", at(owed))
    source = world.controller.state.fragments[move.source]
    assert move.step is MoveStep.DONE and source.status is FragmentStatus.LEAVING
    assert world.carriers["c0"].tables[-1].fragments == frozenset()
    world.batch("c0", at(owed + 9))
    world.batch("c0", at(owed + 10))
    assert source.status is FragmentStatus.GONE


@pytest.mark.parametrize("beyond_us", [0, SECOND])
def test_a_fence_that_was_passed_too_early_is_set_again_further_ahead(world: World, beyond_us: int) -> None:
    move = moving(world)
    missed = move.fence_us
    assert missed is not None
    carrier = world.carriers["c0"]
    carrier.run_batch("c0", [[missed + beyond_us]], 0, 0)  # still with the table from before the fence
    world.hear("c0")
    world.batch("c0", at(missed / SECOND + 2))
    assert move.step is MoveStep.FENCED and move.fences == 2
    assert world.part("q").pending_fence_us == move.fence_us != missed
    world.batch("c0", at(missed / SECOND + 3))
    assert move.step is MoveStep.DRAINING


@pytest.mark.parametrize("there_first", [True, False])
def test_those_who_share_a_fragment_keep_their_columns_when_it_moves(world: World, there_first: bool) -> None:
    """They pick other columns of it, in another order; only one of them is asked when the move is planned.

    The carrier of the other node would do for that one alone, or has the columns under other names.
    """
    texts = {"q": "SELECT k, k + 1 AS one, k + 2 AS two FROM s", "r": "SELECT k + 2 AS a, v, k + 1 AS b, k FROM s"}
    there = "SELECT k * 3 AS t, k + 7 AS u, k + 8 AS w, k FROM s" if there_first else "SELECT k * 3 AS t, v, k FROM s"
    query = parse(there, CATALOG, "w")
    columns_there = tuple(column.name for column in query.columns)
    other = Submission("w", "", columns_there, plan(query, CATALOG).pipelines, node="b")
    if there_first:
        world.submit(other)
    queries = [parse(sql, CATALOG, name) for name, sql in texts.items()]
    names = [tuple(column.name for column in query.columns) for query in queries]
    pipelines = [plan(query, CATALOG).pipelines for query in queries]
    together = zip(queries, names, pipelines, strict=True)
    world.submit(*(Submission(q.name or "", q.sql, columns, made, node="a") for q, columns, made in together))
    if not there_first:
        world.submit(other)
    before = {name: dict(world.part(name).columns) for name in texts}
    assert before["q"] == {"k": "c_i0_k", "one": before["r"]["b"], "two": before["r"]["a"]}
    assert world.part("q").fragment == world.part("r").fragment
    for name in list(world.carriers):
        world.batch(name, at(1, 5))
    world.act(world.controller.move(world.part("q").fragment, "b", "asked for"))
    for _ in range(2):
        for name in list(world.carriers):
            world.batch(name, at(6, 9))
    for name in list(world.carriers):
        world.batch(name, at(200, 201))
    now = {name: dict(world.turns(name)[-1].columns) for name in texts}
    target = world.controller.state.fragments[world.turns("q")[-1].fragment]
    template = world.controller.state.carriers[target.carrier].template
    assert target.id != world.turns("q")[0].fragment, "it has moved"
    assert now["q"] == {"k": "c_i0_k", "one": now["r"]["b"], "two": now["r"]["a"]}
    assert (now["r"]["v"], now["r"]["k"]) == ("c_i0_v", "c_i0_k") and ("i0", "v") in template.columns
    constants = {
        int(str(row[f"{now['q'][out]}_p0"])) for row in world.controller.rows_of(target.id) for out in ("one",)
    }
    assert constants == {1}


def test_columns_that_only_a_query_read_that_has_left_do_not_move(world: World) -> None:
    both = parse("SELECT k, v FROM s WHERE v > 1", CATALOG, "both")
    world.submit(Submission("both", both.sql, ("k", "v"), plan(both, CATALOG).pipelines, node="a"))
    world.submit(submission("q", "filter"))
    assert world.part("q").fragment == world.part("both").fragment
    world.batch("c0", at(1, 5))
    world.withdraw("both")
    world.batch("c0", at(6, 30))
    world.move("q", "b")
    (move,) = world.controller.state.moves.values()
    target = world.controller.state.fragments[move.target]
    assert [output.column for output in target.pipeline.outputs] == [("i0", "k")]


def test_a_source_at_rest_decides_its_fence_too(world: World) -> None:
    """Set before the source was first heard, the fence keeps everything back; there may be nothing more to read."""
    world.submit(submission("q", "filter"))
    world.move("q", "b")
    (move,) = world.controller.state.moves.values()
    world.carriers["c0"].run_batch("c0", [at(1, 5)], 0, 0)  # read, and not heard of yet
    world.batch("c1", [])
    world.hear("c0")
    assert move.step is MoveStep.FENCED and (world.part("q").pending_fence_us or 0) < 5 * SECOND
    assert world.controller.undecided == {"c0"}
    world.act(world.controller.rest("c0"))
    assert world.part("q").pending_fence_us == move.fence_us and (move.fence_us or 0) > 5 * SECOND
    world.act(world.controller.rest("c0"))
    assert move.step is MoveStep.DRAINING
    assert not world.controller.undecided


def test_a_fence_is_not_before_what_the_target_answers_for(world: World) -> None:
    """An aggregate over a join that comes to a carrier answers from a join's window after what was read there on."""
    world.submit(submission("there", "narrow join window", node="b"), submission("q", "join window", node="a"))
    here, there = world.parts("q")[0], world.parts("there")[0]
    source, other = (world.controller.state.fragments[part.fragment].carrier for part in (here, there))
    for name in (source, other):
        world.batch(name, at(10), at(10))
    world.move("q", "b")
    world.batch(other, at(10.5), at(10.5))
    (move,) = world.controller.state.moves.values()
    target = world.controller.state.fragments[move.target]
    assert (target.carrier, target.from_us) == (other, 12 * SECOND + 1)
    assert move.fence_us is not None and move.fence_us >= 12 * SECOND + 1
    world.batch(source, at(10.6), at(10.6))
    assert world.turns("q")[1].from_us == move.fence_us
    assert not losses(world)


def test_until_the_fence_is_passed_it_can_be_abandoned(world: World) -> None:
    move = moving(world)
    world.abandon(move.id)
    assert move.step is MoveStep.ABANDONED
    assert (world.part("q").pending_fence_us, world.part("q").fragment) == (None, move.source)
    assert world.controller.state.fragments[move.target].status is FragmentStatus.GONE
    assert world.carriers["c1"].tables[-1].fragments == frozenset()


def test_afterwards_it_can_not(world: World) -> None:
    move = moving(world)
    world.batch("c0", at(11))
    with pytest.raises(TowpathError, match="a move that is draining cannot be abandon"):
        world.controller.moves.abandon(world.controller.state.moves[move.id], "asked for")


def test_withdrawing_the_query_ends_its_move(world: World) -> None:
    move = moving(world)
    world.withdraw("q")
    assert move.step is MoveStep.ABANDONED
    assert not world.carriers["c1"].tables[-1].fragments
    world.batch("c0", at(20))
    assert not world.carriers["c0"].tables[-1].fragments


def test_a_query_withdrawn_after_the_fence_answers_for_what_was_seen(world: World) -> None:
    move = moving(world)
    world.batch("c0", at(11))
    world.withdraw("q")
    assert [p.until_us for p in world.turns("q")] == [11 * SECOND + 1] * 2
    assert move.step is MoveStep.DRAINING


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("c", "there is no node 'c'; the job has a, b"),
        ("a", "fragment 1 is on node a already"),
        ("b", "fragment 1 is on its way already; wait until that move is done"),
    ],
)
def test_refusals_say_why(world: World, node: str, message: str) -> None:
    moving(world)
    with pytest.raises(MoveRefused) as refused:
        world.move("q", node)
    assert str(refused.value) == message


def test_a_controller_that_dies_at_any_point_goes_on(world: World) -> None:
    move = moving(world)
    world.crash()
    (move,) = world.controller.state.moves.values()
    world.batch("c0", at(11))  # what was read before the crash is in doubt for one batch
    world.crash()
    (move,) = world.controller.state.moves.values()
    for second in range(12, 40):
        world.batch("c0", at(second))
        world.batch("c1", at(second))
    assert move.step is MoveStep.DONE


def test_a_query_lacks_the_windows_that_fail_where_it_was_before(world: World) -> None:
    """The old fragment has left the table with windows open, and its carrier fails as soon as it closes them."""
    world.submit(submission("q", "hopping"))
    for seconds in (2, 11):
        for name in list(world.carriers):
            world.batch(name, at(seconds))
    world.move("q", "b")
    source = world.turns("q")[0].fragment
    old = world.controller.state.fragments[source].carrier
    for second in range(11, 38, 2):
        for name in sorted(world.carriers, reverse=True):
            world.batch(name, at(second))
    assert world.controller.state.fragments[source].status is FragmentStatus.LEAVING
    assert world.query("q").running
    world.carriers[old].running = False
    world.set_aside(old, [source])
    assert not world.query("q").running and world.query("q").failed == "a fault"
    watermark = world.carriers[old].watermark
    assert watermark is not None
    assert {turn.until_us is not None and turn.until_us <= watermark for turn in world.turns("q")} == {True}
