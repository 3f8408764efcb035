from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from towpath import planners
from towpath.control.decide.admission import Room, refuse_without_room
from towpath.control.decide.choose_node import JobPlanner
from towpath.control.observe.measures import WORK, Measures
from towpath.control.observe.situation import Situation
from towpath.errors import AdmissionRefused
from towpath.placement.problem import Placement, Problem
from towpath.runtime.carriers import BatchDone

from .live import LiveWorld
from .world import CATALOG, SECOND, World, submission


@pytest.fixture
def situation(tmp_path: Path) -> Situation:
    """Node a is busy for 0.4 of its time: each of two filters takes 0.1, the carrier the rest."""
    world = World(tmp_path / "journal.sqlite", ("a", "b"))
    world.submit(submission("filter", "filter", node="a"), submission("computed", "computed", node="a"))
    measures, live = Measures(), LiveWorld(world)
    for second in range(5):
        for event in live.round(second, {"a": 0.25}):
            measures.hear(event, second)
    measures.close_window(5, live.at_rest)
    return Situation(world.controller.state, CATALOG, {"a": 1, "b": 1}, measures)


def test_there_is_room_somewhere(situation: Situation) -> None:
    refuse_without_room(situation, Room(0.35), [submission("new", "other filter")])


def test_without_room_it_says_what_is_short_and_where(situation: Situation) -> None:
    with pytest.raises(AdmissionRefused) as refused:
        refuse_without_room(situation, Room(0.45), [submission("new", "other filter", node="a")])
    first, hint = str(refused.value).splitlines()
    assert first == (
        "query new is not taken in: cores are short. Queries of its kind take 0.1 of a core each, "
        "and at most 45% of a node may be busy: a is 40% busy, of 1 cores"
    )
    assert "control.admission.most_load" in hint


def test_queries_that_come_together_add_up(situation: Situation) -> None:
    several = [submission(f"new{n}", "other filter", node="b") for n in range(4)]
    refuse_without_room(situation, Room(0.45), several)
    with pytest.raises(AdmissionRefused, match="new4"):
        refuse_without_room(situation, Room(0.45), [*several, submission("new4", "other filter", node="b")])


def test_a_query_takes_what_further_ones_brought(situation: Situation) -> None:
    """The carrier of the filters came from one fragment to two, and its work from 0.19 to 0.2 of a core."""
    state, measures = situation.state, Measures()
    carrier = next(record.carrier for record in state.fragments.values())
    for number, (fragments, work_s) in enumerate([(1, 0.95), (2, 1.0)], start=1):
        phases = {WORK: int(1000 * work_s)}
        event = BatchDone(carrier, number, 1, (SECOND * 5 * number,), None, 100, (), 0, work_s, phases, first=False)
        measures.hear(event, 5 * number - 1)
        measures.sampled(carrier, list(state.fragments)[:fragments], {number: dict.fromkeys(state.fragments, 10)})
        measures.close_window(5 * number, lambda carrier: False)
    grown = replace(situation, measures=measures)
    refuse_without_room(grown, Room(0.21), [submission("new", "other filter", node="a")])
    with pytest.raises(AdmissionRefused, match=r"take 0\.01 of a core each"):
        refuse_without_room(grown, Room(0.2), [submission("new", "other filter", node="a")])


def test_an_equal_query_takes_nothing(situation: Situation) -> None:
    refuse_without_room(situation, Room(0.01), [submission("new", "same filter", node="a")])


def test_a_kind_that_nobody_measured_is_let_in(situation: Situation) -> None:
    refuse_without_room(situation, Room(0.01), [submission("new", "window", node="a")])


def by_planner(most_load: float, name: str = "sqpr") -> Room:
    return Room(most_load, JobPlanner(name, lambda asked: planners.run(name, asked)))


@pytest.mark.parametrize("name", ["sqpr", "sqpr_heuristic", "soda"])
def test_a_planner_says_whether_there_is_room(situation: Situation, name: str) -> None:
    refuse_without_room(situation, by_planner(0.45, name), [submission("new", "other filter")])
    with pytest.raises(AdmissionRefused, match=f"{name} says that"):
        refuse_without_room(situation, by_planner(0.45, name), [submission("new", "other filter", node="a")])


def test_its_refusal_names_the_resource_that_is_short(situation: Situation) -> None:
    with pytest.raises(AdmissionRefused) as refused:
        refuse_without_room(situation, by_planner(0.05), [submission("new", "other filter")])
    first, hint = str(refused.value).splitlines()
    assert first == (
        "query new is not taken in: sqpr says that it would take more cpu. It takes 0.1 of a core, and at most 5% of a "
        "node may be busy: a is 40% busy, of 1 cores; b is 0% busy, of 1 cores"
    )
    assert "control.admission.most_load" in hint


def test_those_that_do_not_fit_together_are_refused_each(situation: Situation) -> None:
    """Each takes 0.1, and node b has 0.15 for them; what fits is not mentioned."""
    several = [submission(kind.partition(" ")[0], kind, node="b") for kind in ("other filter", "narrow filter")]
    with pytest.raises(AdmissionRefused) as refused:
        refuse_without_room(situation, by_planner(0.15), several)
    assert [line.split()[1] for line in str(refused.value).splitlines()[::2]] == ["narrow"]


def test_equal_queries_that_come_together_are_one_to_it(situation: Situation) -> None:
    refuse_without_room(situation, by_planner(0.15), [submission(f"new{n}", "other filter") for n in range(9)])


def test_what_runs_already_takes_nothing_of_it(situation: Situation) -> None:
    refuse_without_room(situation, by_planner(0.01), [submission("new", "same filter", node="a")])


def test_a_kind_that_nobody_measured_is_estimated_for_it(situation: Situation) -> None:
    with pytest.raises(AdmissionRefused, match="more cpu"):
        refuse_without_room(situation, by_planner(0.001), [submission("new", "window", node="b")])


def test_a_planner_that_fails_keeps_nobody_out(situation: Situation) -> None:
    def fail(asked: Problem) -> Placement:
        raise ValueError("no idea")

    refuse_without_room(situation, Room(0.45, JobPlanner("mine", fail)), [submission("new", "other filter")])
    with pytest.raises(AdmissionRefused, match="cores are short"):
        refuse_without_room(situation, Room(0.05, JobPlanner("mine", fail)), [submission("new", "other filter")])
