"""From when on queries answer: exactly as asked, whoever runs beside them; and how those catch up who want the past."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from towpath.config.settings import BEGINNING, NOW, Start
from towpath.control.journal.answers import share_read, state_of
from towpath.control.state.fence import MoveStep
from towpath.control.state.records import BEGINNING_US, CarrierRecord

from .world import SECOND, World, batch_done, cut, losses, submission

EVERYTHING = (True, None, None)
UNDECIDED = (False, None, None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite", ("a", "b"))


def s(*seconds: float) -> list[int]:
    return [int(second * SECOND) for second in seconds]


def busy(world: World, kind: str = "filter") -> None:
    """A carrier that others share has read up to second 12."""
    world.submit(submission("first", kind, node="a"))
    world.batch("c0", s(10, 12))


def past(world: World) -> list[CarrierRecord]:
    return [carrier for carrier in world.controller.state.carriers.values() if carrier.past]


def state(world: World, name: str) -> str:
    carriers, fragments = world.controller.state.carriers, world.controller.state.fragments
    seats = {p.fragment: carriers[fragments[p.fragment].carrier] for p in world.parts(name)}
    return state_of(world.parts(name), {f: share_read(c, carriers.values()) for f, c in seats.items() if c.past})


def flow(world: World, *seconds: int) -> None:
    for second in seconds:
        for name, carrier in list(world.carriers.items()):
            if carrier.running:
                world.batch(name, *(s(second) for _ in range(carrier.inputs)))
        world.poll()
        world.act(world.controller.unused.stop(0.0))


# --- now -------------------------------------------------------------------------------------------------------------


def test_now_on_a_new_carrier_is_above_all_that_was_there(world: World) -> None:
    world.submit(submission("q", "filter", start=NOW))
    assert world.validity("q") == UNDECIDED
    world.batch("c0", s(10, 12), more=True)
    assert world.validity("q") == UNDECIDED, "there is more"
    world.batch("c0", s(14))
    assert world.validity("q") == (True, 14 * SECOND + 1, None)


def test_now_on_a_new_carrier_is_above_what_others_have_read(world: World) -> None:
    """Even if it is not there any more."""
    busy(world)
    world.submit(submission("q", "window", start=NOW))
    world.batch("c1", s(3))
    assert world.validity("q") == (True, 12 * SECOND + 1, None)


def test_now_is_above_what_an_input_has_and_holds_back(world: World) -> None:
    world.submit(submission("q", "filter", start=NOW))
    world.act(world.controller.handle(replace(batch_done("c0", 0, 1, s(10), first=True), known_us=25 * SECOND)))
    assert world.validity("q") == (True, 25 * SECOND + 1, None)
    world.submit(submission("r", "narrow filter", start=NOW))
    assert world.part("r").asked_us == 25 * SECOND + 1


def test_now_is_above_what_an_input_held_back_before_the_last_start(world: World) -> None:
    """Nothing new has come since, so no micro-batch tells."""
    world.submit(submission("first", "filter"))
    held = replace(batch_done("c0", 0, 1, s(), first=True), known_us=25 * SECOND)
    world.act(world.controller.handle(held))
    world.crash()
    world.submit(submission("q", "same filter", start=NOW))
    world.act(world.controller.rest("c0"))
    assert world.validity("q") == (True, 25 * SECOND + 1, None)


def test_now_on_streams_that_have_nothing(world: World) -> None:
    world.submit(submission("q", "filter", start=NOW))
    assert world.controller.undecided == {"c0"}
    world.act(world.controller.rest("c0"))
    assert world.validity("q") == EVERYTHING, "all that comes is later"
    assert world.controller.undecided == set()


def test_now_on_a_carrier_that_is_still_behind(world: World) -> None:
    world.submit(submission("first", "filter"))
    world.batch("c0", s(1), more=True)
    world.submit(submission("q", "other filter", start=NOW))
    world.batch("c0", s(2), more=True)
    assert world.validity("q") == UNDECIDED
    world.batch("c0", s(9))
    assert world.validity("q") == (True, 9 * SECOND + 1, None)


def test_now_after_the_job_was_away(world: World) -> None:
    busy(world)
    world.crash()
    world.submit(submission("q", "same filter", start=NOW))
    world.batch("c0", s(50), more=True)
    world.batch("c0", s(60))
    assert world.validity("q") == (True, 60 * SECOND + 1, None)


def test_now_of_a_query_in_two_pieces_is_that_of_who_makes_its_stream(world: World) -> None:
    link, query = cut("q", "join window", node="a", start=NOW)
    world.submit(link, query)
    maker, reader = (world.controller.state.fragments[world.part(n).fragment].carrier for n in (link.name, "q"))
    world.controller.links.ready = lambda *_: True  # type: ignore[method-assign]
    world.controller.links.begin_us = lambda *_: None  # type: ignore[method-assign]
    world.batch(reader, [])
    assert world.validity("q") == UNDECIDED
    world.batch(maker, s(20), s(30))
    assert world.validity("q") == (True, 30 * SECOND + 1, None)


# --- a time, or the beginning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [BEGINNING, Start(5 * SECOND), Start(12 * SECOND)])
def test_what_was_read_past_is_read_again(world: World, start: Start) -> None:
    busy(world)
    world.submit(submission("q", "other filter", start=start))
    assert world.validity("q") == (True, start.us, None)
    (carrier,) = past(world)
    assert world.carriers[carrier.id].running
    assert [row["_fragment"] for row in world.controller.known.rows("c0")] == [1], "it is there alone"


def test_a_time_that_is_to_come_needs_no_past(world: World) -> None:
    busy(world)
    world.submit(submission("q", "other filter", start=Start(20 * SECOND)))
    assert world.validity("q") == UNDECIDED
    world.batch("c0", s(14))
    assert world.validity("q") == (True, 20 * SECOND, None)
    assert past(world) == []


def test_a_time_that_was_passed_before_the_query_was_seen(world: World) -> None:
    busy(world)
    world.submit(submission("q", "other filter", start=Start(20 * SECOND)))
    world.carriers["c0"].run_batch("c0", [s(30)], 0, 0)
    world.hear("c0")
    world.batch("c0", s(31))
    world.poll()
    assert world.validity("q") == (True, 20 * SECOND, None)
    assert len(past(world)) == 1


def test_an_equal_query_is_shared_only_if_it_answers_from_then_on(world: World) -> None:
    busy(world)
    world.submit(submission("late", "other filter", start=NOW))
    world.batch("c0", s(13))
    world.submit(submission("q", "other filter"), submission("same", "same filter", start=Start(3)))
    assert world.part("q").fragment != world.part("late").fragment
    assert world.part("same").fragment == world.part("first").fragment
    assert world.validity("q") == EVERYTHING
    assert world.validity("same") == (True, 3, None)


def test_a_query_in_two_pieces_reads_the_past_in_one(world: World) -> None:
    world.submit(submission("first", "narrow join window", node="a"))
    busy_link, busy_query = cut("other", "narrow join window", node="a")
    world.submit(busy_link, busy_query)
    maker = world.controller.state.fragments[world.part(busy_link.name).fragment].carrier
    world.batch(maker, s(20), s(20))
    link, query = cut("q", "join window", node="a")
    world.submit(link, query)
    reader = world.controller.state.fragments[world.part("q").fragment].carrier
    world.controller.links.ready = lambda *_: True  # type: ignore[method-assign]
    world.controller.links.begin_us = lambda *_: 25 * SECOND  # type: ignore[method-assign]
    world.batch(reader, [])
    world.poll()
    assert world.validity("q") == EVERYTHING
    assert world.controller.state.carriers[world.controller.state.fragments[world.part("q").fragment].carrier].past
    assert world.controller.queries.running.get(link.name) is None, "nobody reads it"


# --- catching up -----------------------------------------------------------------------------------------------------


def test_those_who_ask_together_share_a_carrier_and_move_into_the_shared_one(world: World) -> None:
    busy(world)
    world.submit(*(submission(f"q{n}", kind) for n, kind in enumerate(["other filter", "computed", "union"])))
    assert len(past(world)) <= 2, "`computed` is of a wider shape than anybody runs"
    (carrier,) = (c for c in past(world) if c.template.family.kind == "filter")
    world.batch(carrier.id, s(2), more=True)
    world.batch(carrier.id, s(7), more=True)
    assert state(world, "q0") == "catching up 50%"
    flow(world, *range(13, 60))
    assert state(world, "q0") == "standing"
    assert {m.step for m in world.controller.state.moves.values()} == {MoveStep.DONE}
    assert not world.carriers[carrier.id].running, "nobody needs it any more"
    first, second = world.turns("q0")
    assert (first.from_us, second.until_us) == (None, None)
    assert first.handed_over_us == second.from_us
    assert world.controller.state.fragments[second.fragment].carrier == "c0"
    assert not losses(world)


def test_who_asks_while_the_past_is_read_waits_for_the_next_time(world: World) -> None:
    busy(world)
    world.submit(submission("q", "other filter"))
    world.submit(submission("r", "union"))
    (carrier,) = past(world)
    assert not any(part.settled for part in world.parts("r"))
    world.batch(carrier.id, s(12))
    world.poll()
    assert all(part.settled and part.from_us is None for part in world.parts("r"))
    assert len(past(world)) == 2


def test_it_goes_on_after_a_crash(world: World) -> None:
    busy(world)
    world.submit(submission("q", "other filter"))
    (carrier,) = past(world)
    world.batch(carrier.id, s(2), more=True)
    world.crash()
    flow(world, *range(13, 60))
    assert len(world.turns("q")) == 2
    assert world.turns("q")[0].from_us is None
    assert not losses(world)


def test_one_that_waits_for_the_past_still_does_after_a_crash(world: World) -> None:
    busy(world)
    world.controller.queries.submit([submission("q", "other filter")])
    world.save()
    world.crash()
    assert world.validity("q") == UNDECIDED
    world.poll()
    assert world.validity("q") == EVERYTHING


def test_a_query_that_is_withdrawn_takes_its_carrier_along(world: World) -> None:
    busy(world)
    world.submit(submission("q", "other filter"))
    (carrier,) = past(world)
    world.batch(carrier.id, s(2, 9), more=True)
    world.withdraw("q")
    flow(world, *range(13, 30))
    assert not world.carriers[carrier.id].running
    assert world.part("q").until_us not in (None, BEGINNING_US)


def test_its_node_is_lost_or_drained_meanwhile(world: World) -> None:
    busy(world)
    world.submit(submission("q", "other filter"), submission("r", "union"))
    world.lose("a")
    assert {carrier.node for carrier in past(world)} == {"b"}
    world.back("a")
    world.act(world.controller.draining.begin("b"))
    flow(world, *range(13, 60))
    assert world.controller.node_state("b") == "drained"
    assert world.turns("q")[0].from_us is None
    assert not losses(world)
