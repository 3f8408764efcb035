from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

from lab.sim.cases import everything, pair, queue, spread
from towpath.errors import UnknownNameError
from towpath.lab.sim import Crash, Cut, Simulation, simulate
from towpath.lab.sim.outcome import TABLES
from towpath.placement.cluster import Node
from towpath.placement.problem import Placement
from towpath.runtime.actors import (
    Actors,
    Arrived,
    Measured,
    NodeJoined,
    NodeLost,
    Note,
    PolicyEvent,
    PolicyInstruction,
    Send,
    Started,
    Wake,
    Woken,
)


@dataclass
class Talker:
    """Sends "hello" to somebody every second, and keeps what it hears."""

    address: str
    to: str
    heard: list[PolicyEvent] = field(default_factory=list)

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        self.heard.append(event)
        match event:
            case Started(at) | Woken(at, _):
                return [Send(self.to, "hello", 5_000), Note("said hello"), Wake(at + 1.0, "again")]
        return []

    def times(self, kind: type[PolicyEvent]) -> list[float]:
        return [event.at for event in self.heard if isinstance(event, kind)]


def test_messages_take_the_links_of_nodes() -> None:
    a, b, manager = Talker("a", "b"), Talker("b", "manager"), Talker("manager", "nobody")
    outcome = simulate(pair(), Placement({}), 2.5, actors=Actors([a, b, manager]))
    # 2 ms of latency; 5 kB take 0.1 s on a link of 50 kB/s. A manager is on no node and has no such link.
    assert b.times(Arrived) == pytest.approx([0.102, 1.102, 2.102])
    assert manager.times(Arrived) == pytest.approx([0.002, 1.002, 2.002])
    assert outcome.windows["messages"].tolist() == [6, 3, 0]
    assert outcome.windows["message_bytes"].sum() == 45_000
    assert outcome.lost["to_actors"] == 3
    assert outcome.notes["actor"].tolist() == ["a", "b", "manager"] * 3


def test_the_dead_neither_hear_nor_speak() -> None:
    a, b = Talker("a", "b"), Talker("b", "a")
    simulate(pair(), Placement({}), 3.5, actors=Actors([a, b]), faults=[Crash(0.5, "b", 2.5), Cut(0.5, "a", "b")])
    assert a.times(NodeLost) == [0.5]
    assert a.times(NodeJoined) == [2.5]
    assert a.times(Arrived) == pytest.approx([0.102])  # it was not awake to be woken again
    assert b.times(Arrived) == pytest.approx([0.102])
    assert b.times(NodeLost) == []


def test_the_actor_of_a_node_that_is_dead_at_the_start_is_started_when_it_comes() -> None:
    a, b = Talker("a", "b"), Talker("b", "a")
    simulate(pair(), Placement({}), 2.0, actors=Actors([a, b]), faults=[Crash(0.0, "b", 1.5)])
    assert [type(event) for event in a.heard[:2]] == [Started, NodeLost]
    assert [type(event) for event in b.heard[:2]] == [Started, NodeJoined]
    assert (a.times(Started), b.times(Started)) == ([0.0], [1.5])


@dataclass
class Listener:
    address: str
    heard: list[Measured] = field(default_factory=list)

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        if isinstance(event, Measured):
            self.heard.append(event)
        return []


def test_each_node_is_measured_by_whom_it_reports_to() -> None:
    a, boss = Listener("a"), Listener("boss")
    problem = pair()
    actors = Actors([a, boss], {"a": "a", "b": "boss", "c": "boss"}, window=0.5)
    outcome = simulate(problem, spread(), 10.0, actors=actors, record=0.5)
    assert len(a.heard) == 20
    assert [list(event.statistics.nodes) for event in boss.heard[:3]] == [["b"], ["c"], ["b"]]
    rows = outcome.nodes[outcome.nodes["node"] == "a"]
    assert [event.statistics.nodes["a"].load for event in a.heard] == pytest.approx(rows["load"].tolist())
    last = a.heard[-1].statistics
    assert (last.at, last.seconds) == (10.0, 0.5)
    assert last.streams == {"s1": pytest.approx(100.0, abs=2)}
    assert list(last.operators) == ["p.f1", "p.f2", "p.j", "p.h", "r.f1"]
    assert last.operators["p.f1"].rate == pytest.approx(100.0, abs=4)
    assert last.operators["p.f1"].selectivity == pytest.approx(0.7, abs=0.2)
    assert last.operators["p.f1"].cost == pytest.approx(0.001)
    assert last.operators["p.j"].state_bytes == 9_000.0
    assert last.operators["p.j"].state_tuples == pytest.approx(90.0)
    assert last.nodes["a"].bytes_out > 0 and last.nodes["a"].memory >= 9_000.0


def test_load_is_the_share_of_the_time_that_is_busy() -> None:
    outcome = simulate(queue(1.7), Placement.single({"f0": "n0"}), 5.0)
    assert outcome.nodes["load"].tolist() == pytest.approx([1.0] * 5, abs=1e-3)
    assert outcome.nodes["queued"].is_monotonic_increasing


def test_a_run_can_be_stopped() -> None:
    heard: list[float] = []

    def progress(at: float) -> None:
        heard.append(at)
        if at >= 3.0:
            simulation.stop()

    simulation = Simulation(queue(0.5), Placement.single({"f0": "n0"}), 10.0)
    simulation.run(progress)
    assert heard == [1.0, 2.0, 3.0]
    assert simulation.outcome().seconds == 3.0
    assert simulation.outcome().windows["at"].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_outcome_can_be_written(tmp_path: Path, kind: str) -> None:
    outcome = everything()
    files = outcome.write(tmp_path / "out", kind)
    assert [file.stem for file in files] == list(TABLES)
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    assert len(read(tmp_path / "out" / f"queries.{kind}")) == len(outcome.queries) > 0


def test_what_an_actor_raises_ends_the_simulation() -> None:
    class Broken:
        address = "broken"

        def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
            raise RuntimeError("no idea")

    with pytest.raises(RuntimeError, match="no idea"):
        simulate(queue(0.5), Placement.single({"f0": "n0"}), 1.0, actors=Actors([Broken()]))


def test_a_fault_of_an_unknown_node_is_reported() -> None:
    faults = [Crash(1.0, "x"), Cut(1.0, "a", "y"), Crash(2.0, "x")]
    with pytest.raises(UnknownNameError, match=r"does not have: x, y$"):
        simulate(pair(), spread(), 1.0, faults=faults)


def test_nodes_are_described_as_they_are() -> None:
    a, b = Talker("a", "b"), Talker("b", "a")
    simulate(pair(), Placement({}), 3.0, actors=Actors([a, b]), faults=[Crash(1.0, "c", 2.0)])
    joined = [event.node for event in a.heard if isinstance(event, NodeJoined)]
    assert joined == [Node("c", cpu=1.5)]
