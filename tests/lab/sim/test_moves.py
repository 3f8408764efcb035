from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab.sim.cases import BACK_AND_FORTH, Script, pair, scripted, spread
from towpath.lab.sim import Crash, Cut, Profile, simulate
from towpath.placement.problem import Placement
from towpath.runtime.actors import Actors, Move, MoveDone, MoveFailed

STOP = Profile(steps=((4.5, 0.0),))  # so that everything is processed at the end


@pytest.mark.parametrize("protocol", ["pause", "drain", "fence"])
def test_moves_lose_and_double_nothing(protocol: str) -> None:
    problem = pair()
    still = simulate(problem, spread(), 8.0, profile=STOP)
    moved = simulate(problem, spread(), 8.0, profile=STOP, actors=scripted(BACK_AND_FORTH), move=protocol)
    assert (moved.moves["failed"] == "").all()
    assert len(moved.moves) == len(BACK_AND_FORTH)
    assert moved.paths["tuples"].tolist() == still.paths["tuples"].tolist()
    assert moved.queries["results"].sum() == still.queries["results"].sum()
    same = moved.operators["taken"] == still.operators["taken"]
    if protocol != "fence":
        assert same.all()
        assert moved.operators["state_bytes"].tolist() == still.operators["state_bytes"].tolist()
    else:  # both take tuples in for the length of a window; without one there is none
        assert not same[moved.operators["operator"] == "p.j"].all()
        assert same[moved.operators["operator"] == "p.h"].all()


@pytest.mark.parametrize("protocol", ["pause", "drain", "fence"])
def test_each_tuple_comes_once_and_in_order(protocol: str) -> None:
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, str(Path(__file__).with_name("order.py")), protocol]
    lines = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0::3] == ["moves 8 failed 0"] * 2
    assert lines[1::3] == ["doubled 0"] * 2
    if protocol != "fence":  # it promises no order: results of the old and the new place may overtake each other
        assert lines[2::3] == ["out of order 0"] * 2


def test_to_drain_does_not_wait_for_what_waits_for_others() -> None:
    """A node with 3 s of other work before it: the queue of the fragment that leaves is its own."""
    moves = [(1.0, "p3", "a", "c")]
    seconds = []
    for protocol in ("pause", "drain"):
        outcome = simulate(pair(4.0), spread(), 30.0, profile=STOP, actors=scripted(moves), move=protocol)
        assert outcome.moves["failed"].tolist() == [""]
        seconds.append(float(outcome.moves["seconds"][0]))
    assert seconds[1] < 0.2 * seconds[0]


def test_errands_do_not_overtake_tuples_that_a_network_card_takes_in() -> None:
    """Else the old place would be closed before the last tuples that were sent to it."""
    problem = pair()
    nodes = tuple(replace(node, bandwidth_in=9_000.0) for node in problem.cluster.nodes)
    slow = replace(problem, cluster=replace(problem.cluster, nodes=nodes))
    still = simulate(slow, spread(), 12.0, profile=STOP)
    for protocol in ("pause", "drain"):
        moved = simulate(slow, spread(), 12.0, profile=STOP, actors=scripted(BACK_AND_FORTH), move=protocol)
        assert (moved.moves["failed"] == "").any()
        assert moved.paths["tuples"].tolist() == still.paths["tuples"].tolist()


def test_the_fragment_is_where_it_was_moved() -> None:
    script = Script([(1.0, Move("p1", "a", "b", "to see"))])
    outcome = simulate(pair(), spread(), 3.0, actors=Actors([script]))
    assert outcome.placement == spread().moved("p1", "a", "b")
    (event,) = script.heard
    assert isinstance(event, MoveDone)
    row = outcome.moves.iloc[0]
    # 50 kB/s: 9 kB of state take 0.18 s, and 1 us of work per byte on both sides, one of them at cpu 0.8
    assert row["state_bytes"] == pytest.approx(9_000, abs=1_000)
    assert row["seconds"] == event.seconds == pytest.approx(row["state_bytes"] * (1 / 50_000 + 1e-6 * 2.25), rel=0.25)
    assert outcome.windows["state_bytes"].sum() == row["state_bytes"]


def test_others_go_on_while_one_waits() -> None:
    moved = simulate(pair(), spread(), 3.0, actors=scripted([(1.0, "p1", "a", "b")]), record=0.05)
    still = simulate(pair(), spread(), 3.0, record=0.05)
    meanwhile = moved.queries["at"].between(1.06, 1.19)
    assert moved.queries[meanwhile & (moved.queries["query"] == "p")]["results"].sum() < 3
    of_r = moved.queries[meanwhile & (moved.queries["query"] == "r")]["results"].sum()
    assert of_r >= 0.8 * still.queries[meanwhile & (still.queries["query"] == "r")]["results"].sum()


REFUSED = {
    "unknown fragment": (("x", "a", "b"), "there is no fragment x"),
    "unknown node": (("p1", "a", "x"), "there is no node x"),
    "not there": (("p1", "b", "c"), "it does not run on b"),
    "there already": (("p1", "a", "a"), "it runs on a already"),
    "dead": (("p1", "a", "c"), "c is dead"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_why(case: str) -> None:
    move, reason = REFUSED[case]
    script = Script([(1.0, Move(*move, "to see"))])
    outcome = simulate(pair(), spread(), 2.0, actors=Actors([script]), faults=[Crash(0.5, "c")])
    assert script.heard == [MoveFailed(1.0, *move, reason)]
    assert outcome.moves["failed"].tolist() == [reason]
    assert outcome.placement == spread()


def test_what_moves_cannot_be_moved() -> None:
    script = Script([(1.0, Move("p1", "a", "b", "first")), (1.05, Move("p1", "a", "c", "second"))])
    simulate(pair(), spread(), 3.0, actors=Actors([script]))
    assert [type(event) for event in script.heard] == [MoveFailed, MoveDone]
    assert script.heard[0].reason == "it is already moving"


@pytest.mark.parametrize("protocol", ["pause", "fence"])
@pytest.mark.parametrize("dies", ["a", "b"])
def test_a_node_dies_during_a_move(dies: str, protocol: str) -> None:
    """From a dead source the fragment goes on without its state; to a dead target it does not go."""
    script = Script([(1.0, Move("p1", "a", "b", "to see"))])
    outcome = simulate(pair(), spread(), 4.0, actors=Actors([script]), faults=[Crash(1.1, dies)], move=protocol)
    (event,) = script.heard
    assert event.at == 1.1
    assert isinstance(event, MoveDone if dies == "a" else MoveFailed)
    assert outcome.placement.nodes["p1"] == (("b",) if dies == "a" else ("a",))
    assert outcome.lost["at_nodes"] > 0


def test_a_fragment_is_taken_over_from_a_dead_node() -> None:
    outcome = simulate(
        pair(), spread(), 6.0, actors=scripted([(2.0, "r2", "c", "b")]), faults=[Crash(1.0, "c")], profile={}
    )
    rows = outcome.queries[outcome.queries["query"] == "r"]
    assert rows[rows["at"] == 2.0]["results"].item() == 0
    assert rows[rows["at"] == 4.0]["results"].item() > 50


def test_what_is_lost_is_counted() -> None:
    """Everything that entered was processed, is lost and counted, or waits."""
    problem = pair()
    faults = [Crash(1.0, "c", 1.5), Cut(2.0, "a", "c", 2.5)]
    outcome = simulate(problem, spread(), 8.0, profile=STOP, faults=faults)
    entered = outcome.streams.set_index("stream")["tuples"]
    taken = outcome.operators.set_index("operator")["taken"]
    given = outcome.operators.set_index("operator")["given"]
    missing = entered["s3"] + given["r.f1"] - taken["r.j"]
    in_service = 1  # taken in when its node died
    assert missing + in_service == sum(outcome.lost[where] for where in ("at_nodes", "on_links", "at_entry"))
    assert outcome.lost["at_entry"] == pytest.approx(20, abs=1)  # half a second of s3
    assert outcome.lost["on_links"] == pytest.approx(35, abs=10)  # half a second of s1 after its filter


def test_a_pinned_fragment_stays() -> None:
    script = Script([(1.0, Move("p1", "a", "b", "to see"))])
    simulate(replace(pair(), pinned={"p1": "a"}), spread(), 2.0, actors=Actors([script]))
    assert script.heard == [MoveFailed(1.0, "p1", "a", "b", "it is pinned to a")]


def test_a_fragment_that_runs_nowhere_takes_nothing() -> None:
    admitted = Placement({f: n for f, n in spread().nodes.items() if f.startswith("p")}, {"r": "no room"})
    outcome = simulate(pair(), admitted, 2.0)
    assert outcome.queries[outcome.queries["query"] == "r"]["results"].sum() == 0
    assert outcome.placement == admitted
