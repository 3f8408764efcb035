from __future__ import annotations

from pathlib import Path

import pytest

from towpath.control.decide.admission import Room, refuse_without_room
from towpath.control.observe.measures import Measures
from towpath.control.observe.situation import Situation
from towpath.errors import AdmissionRefused

from .live import LiveWorld
from .world import CATALOG, World, submission


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


def test_an_equal_query_takes_nothing(situation: Situation) -> None:
    refuse_without_room(situation, Room(0.01), [submission("new", "same filter", node="a")])


def test_a_kind_that_nobody_measured_is_let_in(situation: Situation) -> None:
    refuse_without_room(situation, Room(0.01), [submission("new", "window", node="a")])
