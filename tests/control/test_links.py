"""Derived streams come with the first query that reads them and go with the last, and readers know what they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from towpath.config.settings import BEGINNING, Start
from towpath.control.observe.measures import Measures
from towpath.control.observe.situation import Situation, operator
from towpath.control.state.records import FragmentStatus
from towpath.placement.check import check
from towpath.placement.validate import validate
from towpath.results.links import Link
from towpath.runtime.carriers import BatchDone
from towpath.schema import BEFORE_ALL_US, is_link

from .world import CATALOG, SECOND, World, batch_done, cut

NODES = ("a", "b")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite", NODES)


def submit_cut(world: World, name: str, kind: str = "join window", node: str = "a", start: Start = BEGINNING) -> str:
    """Returns the name of the link."""
    link, query = cut(name, kind, node=node, start=start)
    known = world.controller.queries.running.get(link.name) is not None
    world.submit(*([query] if known else [link, query]))
    return link.name


def declared(world: World) -> dict[str, Link]:
    return {link.name: link for _, link in world.controller.links.declared(lambda carrier: f"/{carrier}")}


def reader_of(world: World, name: str) -> str:
    return world.controller.state.fragments[world.part(name).fragment].carrier


def hear(world: World, event: BatchDone) -> None:
    world.act(world.controller.handle(event))
    world.save()


def batch(world: World, query: str, number: int, newest: int, joined: dict[tuple[str, int], int]) -> None:
    carrier = reader_of(world, query)
    version = world.controller.state.carriers[carrier].version
    hear(world, replace(batch_done(carrier, number, version, [newest], first=number == 0), joined=joined))


def test_a_cut_query_is_two_fragments_in_two_carriers(world: World) -> None:
    name = submit_cut(world, "q")
    (link,) = declared(world).values()
    assert link.name == name and link.settled, "it is in the first table of its carrier"
    carriers = world.controller.state.carriers.values()
    assert [[is_link(c) for c in carrier.template.family.classes] for carrier in carriers] == [[False, False], [True]]


def test_readers_share_a_link_and_the_last_one_takes_it_along(world: World) -> None:
    name = submit_cut(world, "q")
    assert submit_cut(world, "r") == name
    world.withdraw("q")
    assert list(declared(world)) == [name]
    world.withdraw("r")
    assert declared(world) == {}
    assert world.controller.queries.running.get(name) is None


def test_it_is_remembered(world: World) -> None:
    name = submit_cut(world, "q")
    before = declared(world)
    world.crash()
    assert declared(world) == before
    world.withdraw("q")
    assert world.controller.queries.running.get(name) is None


def test_a_reader_is_live_once_its_carrier_reads_the_link(world: World) -> None:
    name = submit_cut(world, "q")
    key = name, world.query(name).id
    batch(world, "q", 0, 10 * SECOND, {})
    assert not world.part("q").settled
    batch(world, "q", 1, 11 * SECOND, {(name, 77): BEFORE_ALL_US})
    assert not world.part("q").settled, "that was an earlier link of the same name"
    batch(world, "q", 2, 12 * SECOND, {key: BEFORE_ALL_US})
    assert world.validity("q") == (True, None, None), "it is in the first table, and so is the link"


def test_it_answers_from_where_the_link_counts(world: World) -> None:
    name = submit_cut(world, "q", start=Start(5 * SECOND + 1))
    batch(world, "q", 0, 12 * SECOND, {(name, world.query(name).id): 5 * SECOND})
    assert world.validity("q") == (True, 5 * SECOND + 1, None)


def test_it_answers_from_where_the_link_is_whole(world: World) -> None:
    """The one who makes it joined later: pairs are whole a join's window after that."""
    other = submit_cut(world, "other", "narrow join window")
    maker = world.controller.state.fragments[world.part(other).fragment].carrier
    world.batch(maker, [20 * SECOND], [20 * SECOND])
    batch(world, "other", 0, 5 * SECOND, {(other, world.query(other).id): BEFORE_ALL_US})
    begin = 20 * SECOND + 1
    name = submit_cut(world, "q", start=Start(begin + 2 * SECOND))
    world.batch(maker, [30 * SECOND], [31 * SECOND])
    assert declared(world)[name].turns[0].from_us == begin
    batch(world, "q", 1, 40 * SECOND, {(name, world.query(name).id): 5 * SECOND})
    assert world.validity("q") == (True, begin + 2 * SECOND, None)
    assert world.controller.state.fragments[world.part("q").fragment].from_us == begin + 2 * SECOND, "and not before"


def test_a_fence_is_declared_before_it_can_be_passed_and_a_drained_job_takes_it_back(world: World) -> None:
    name = submit_cut(world, "q")
    maker = world.controller.state.fragments[world.part(name).fragment].carrier
    world.batch(maker, [SECOND], [SECOND])
    world.act(world.controller.move(world.part(name).fragment, "b", "asked for"))
    target = next(c for c in world.carriers if world.controller.state.carriers[c].node == "b")
    world.batch(target, [SECOND], [SECOND])
    (turn,) = declared(world)[name].turns
    assert turn.pending_fence_us is not None and turn.pending_fence_us > SECOND
    world.act(world.controller.abandon_links("the job is drained"))
    (turn,) = declared(world)[name].turns
    assert turn.pending_fence_us is None
    fragments = world.controller.state.fragments
    assert [f.status for f in fragments.values() if f.carrier == target] == [FragmentStatus.GONE]


def test_planners_see_what_flows_between_fragments(world: World) -> None:
    name = submit_cut(world, "q")
    assert submit_cut(world, "r") == name
    situation = Situation(world.controller.state, CATALOG, dict.fromkeys(NODES, 1), Measures())
    problem = situation.problem
    assert validate(problem) == []
    assert problem.current is not None and not [v for v in check(problem, problem.current) if v.structural]
    maker = f"f{world.part(name).fragment}"
    top = f"f{world.part('q').fragment}"
    assert problem.fragment[top].operators[0].inputs == (operator(maker),)
    assert problem.fragment[maker].operators[0].inputs == ("s", "t")
    assert problem.query["q"].fragments == (maker, top), "it belongs to the first query that reads it"


def test_what_a_reader_has_yet_to_read_is_kept(world: World) -> None:
    name = submit_cut(world, "q")
    maker = world.controller.state.fragments[world.part(name).fragment].carrier
    assert world.controller.links.read_us() == {maker: BEFORE_ALL_US}
    batch(world, "q", 0, 7 * SECOND, {(name, world.query(name).id): BEFORE_ALL_US})
    assert world.controller.links.read_us() == {maker: 7 * SECOND}
    world.withdraw("q")
    assert world.controller.links.read_us() == {maker: 7 * SECOND}, "it answers for all that was read"
    batch(world, "q", 1, 8 * SECOND, {(name, world.query(name).id): BEFORE_ALL_US})
    assert world.controller.links.read_us() == {}


def test_what_the_slowest_reader_has_yet_to_read_is_kept(world: World) -> None:
    name = submit_cut(world, "q", node="a")
    assert submit_cut(world, "r", node="b") == name
    assert reader_of(world, "q") != reader_of(world, "r")
    maker = world.controller.state.fragments[world.part(name).fragment].carrier
    joined = {(name, world.query(name).id): BEFORE_ALL_US}
    batch(world, "q", 0, 7 * SECOND, joined)
    assert world.controller.links.read_us() == {maker: BEFORE_ALL_US}, "the other one has read nothing"
    batch(world, "r", 0, 3 * SECOND, joined)
    assert world.controller.links.read_us() == {maker: 3 * SECOND}
    batch(world, "r", 1, 9 * SECOND, joined)
    assert world.controller.links.read_us() == {maker: 7 * SECOND}
