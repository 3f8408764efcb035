from __future__ import annotations

from towpath.placement.cluster import Node
from towpath.policies.sbon.directory import Directory
from towpath.policies.sbon.messages import (
    Candidates,
    Claim,
    Denied,
    Done,
    Granted,
    Message,
    Nearest,
    Place,
    Publish,
)
from towpath.runtime.actors import Arrived, NodeJoined, NodeLost, Send


def three() -> Directory:
    """On a line, 1 s apart; c runs nothing, and f is on b."""
    positions = {"a": (0.0,), "b": (1.0,), "c": (2.0,), "d": (3.0,)}
    return Directory(positions, ["a", "b", "d"], {"f": "b"})


def said(directory: Directory, sender: str, message: Message) -> object:
    """The answer, if there is one."""
    answers = directory.handle(Arrived(1.0, sender, message))
    for answer in answers:
        assert isinstance(answer, Send) and answer.to == sender
        return answer.message
    return None


def test_one_optimiser_at_a_time_deals_with_a_query() -> None:
    directory = three()
    wanted = Claim(1, ("query q", "query r"), ("f",), ("c",))
    place = Place("b", (1.0,), (1.0,))
    assert said(directory, "a", wanted) == Granted(1, {"f": place}, {"c": (2.0,)})
    assert said(directory, "b", Claim(7, ("query r",), (), ())) == Denied(7)
    assert isinstance(said(directory, "b", Claim(8, ("query s",), (), ())), Granted)
    said(directory, "a", Done(1, {"f": (0.5,)}, {"f": "d"}))
    place = Place("d", (3.0,), (0.5,))
    assert said(directory, "b", Claim(9, ("query r",), ("f",), ())) == Granted(9, {"f": place}, {})


def test_only_the_holder_gives_a_claim_back() -> None:
    directory = three()
    said(directory, "a", Claim(1, ("query q",), (), ()))
    said(directory, "b", Done(1))
    said(directory, "a", Done(0))
    assert said(directory, "b", Claim(2, ("query q",), (), ())) == Denied(2)


def test_the_claims_of_a_lost_node_end() -> None:
    directory = three()
    said(directory, "a", Claim(1, ("query q",), (), ()))
    directory.handle(NodeLost(2.0, "a"))
    assert isinstance(said(directory, "b", Claim(2, ("query q",), (), ())), Granted)


def test_the_nearest_that_can_run_something() -> None:
    directory = three()
    assert said(directory, "a", Nearest(1, (1.8,), 2)) == Candidates(1, {"b": (1.0,), "d": (3.0,)}, False)
    directory.handle(NodeLost(2.0, "b"))
    assert said(directory, "a", Nearest(1, (1.8,), 2)) == Candidates(1, {"d": (3.0,), "a": (0.0,)}, True)
    directory.handle(NodeJoined(3.0, Node("b")))
    said(directory, "b", Publish((9.0,), ()))
    assert said(directory, "a", Nearest(1, (1.8,), 1)) == Candidates(1, {"d": (3.0,)}, False)


def test_who_publishes_a_fragment_runs_it() -> None:
    directory = three()
    said(directory, "d", Publish((4.0,), ("f",)))
    assert said(directory, "a", Claim(1, (), ("f",), ())) == Granted(1, {"f": Place("d", (4.0,), (4.0,))}, {})
