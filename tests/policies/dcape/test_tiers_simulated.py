"""Two tiers of managers while data flows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from lab.sim.cases import digest
from policies.dcape.simulated import ENDS, OPTIONS, group, in_one_group, managers, problem, run, tiered
from towpath.lab.sim import Crash, SimulationOutcome
from towpath.policies import dcape
from towpath.policies.dcape.agent import Agent
from towpath.policies.dcape.connections import Wiring, requests_for
from towpath.runtime.actors import Actors


@pytest.fixture(scope="module")
def actors() -> Actors:
    return tiered()


@pytest.fixture(scope="module")
def outcome(actors: Actors) -> SimulationOutcome:
    return run(actors)


def test_load_goes_to_all_groups_and_to_all_nodes_of_each(outcome: SimulationOutcome) -> None:
    between = [(group(m.source), group(m.target)) for m in outcome.moves.itertuples()]
    assert {target for source, target in between if source == 0 != target} == {1, 2, 3}
    assert {nodes[0] for nodes in outcome.placement.nodes.values()} == {f"n{n}" for n in range(1, 17)}
    deviation = outcome.windows.set_index("at")["load_stdev"]
    assert deviation[ENDS] < deviation[5.0] / 4


def test_groups_are_evened_by_the_manager_above_and_nodes_by_their_own(outcome: SimulationOutcome) -> None:
    for move in outcome.moves.itertuples():
        across = group(move.source) != group(move.target)
        assert across == move.reason.startswith("manager.1.")


def test_nothing_is_lost_and_nothing_doubled(outcome: SimulationOutcome) -> None:
    still = run(None)
    columns = ["operator", "taken", "given"]
    pd.testing.assert_frame_equal(outcome.operators[columns], still.operators[columns])
    assert outcome.windows["results"].sum() == still.windows["results"].sum() > 0
    assert not any(outcome.lost.values())


def test_all_know_where_things_are_in_the_end(actors: Actors, outcome: SimulationOutcome) -> None:
    where = {fragment: nodes[0] for fragment, nodes in outcome.placement.nodes.items()}
    root, *below = managers(actors)
    assert root.distribution.table == {f: f"manager.1.{1 + group(node)}" for f, node in where.items()}
    assert {f: node for manager in below for f, node in manager.distribution.table.items()} == where
    assert not any(manager.distribution.kept or manager.distribution.arriving for manager in (root, *below))
    wiring = Wiring(problem())
    for agent in (actor for actor in actors.actors if isinstance(actor, Agent)):
        needed = [r for r in requests_for(wiring, where, agent.address) if r.verb != "activate"]
        assert agent.connections == {(r.verb, r.fragment, r.peer, r.host) for r in needed}


def test_the_manager_above_has_less_to_read_than_one_for_all(outcome: SimulationOutcome) -> None:
    made = problem()
    flat = run(dcape.actors(made, in_one_group(made), replace(OPTIONS, fan_out=0)))
    mail = {name: o.actors.set_index("actor")["received_bytes"] for name, o in (("flat", flat), ("tiers", outcome))}
    assert mail["tiers"]["manager"] < mail["flat"]["manager"] / 2


def test_messages_are_counted_for_each(outcome: SimulationOutcome) -> None:
    mail = outcome.actors
    assert mail["sent"].sum() == mail["received"].sum() == outcome.windows["messages"].sum()
    assert mail["sent_bytes"].sum() == outcome.windows["message_bytes"].sum()
    assert set(mail["actor"]) == {"manager", *(f"manager.1.{n}" for n in range(1, 5)), *(f"n{n}" for n in range(1, 17))}


def test_the_same_in_another_process(outcome: SimulationOutcome) -> None:
    folder = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-m", "policies.dcape.simulated"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == digest(outcome)


def test_other_groups_take_over_from_one_that_dies() -> None:
    made = tiered()
    outcome = run(made, [Crash(25.0, f"n{n}") for n in range(1, 5)])
    where = Counter(group(nodes[0]) for nodes in outcome.placement.nodes.values())
    assert where[0] == 0 and sum(where.values()) == len(problem().fragments)
    assert "manager.1.1" not in managers(made)[0].distribution.table.values()
