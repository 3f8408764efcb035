"""A policy moves fragments on real Spark by what it measured there, and every answer stays that of DuckDB."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.seconds import arrive, stream, wrong

from policies.contract import Record, recording, violations
from towpath import policies
from towpath.api.running import Towpath, start
from towpath.config.nodes import NodeDef
from towpath.config.steering import ControlDef
from towpath.control.state.fence import MoveStep
from towpath.job import Job, QueryDef, ResultsDef
from towpath.lab.testing.running import EMBEDDED, ONE, TWO
from towpath.spark import server

pytestmark = [pytest.mark.spark, pytest.mark.live]

ROWS = 500  # of a chunk, which is a second of event time
MOST_CHUNKS = 1000
QUERIES = {f"q{n}": f"SELECT k, v FROM s WHERE v > {n * 100}" for n in range(6)}
OPTIONS = {"every": 1, "window": 0.2, "at_once": 3}
CONTROL = {"policy": "dcape", "options": OPTIONS, "every": "200 ms"}
# Of every policy that moves something: options with which it soon does, and what its actors hear of it.
RESTLESS = {
    "dcape": OPTIONS,
    "zhou": {"tau": 0.2, "delta": 1},
    "replan": {"every": 1, "window": 0.2},
    "sbon": {"every": 1, "sample": 1, "window": 0.2, "smoothing": 1.0},
    "sqpr": {"every": 1, "window": 0.2, "most_load": 0.01},
}
MOVED = {"Started", "Woken", "Measured", "MoveDone"}
HEARS = {
    "dcape": MOVED | {"Arrived", "NodeLost"},
    "zhou": MOVED | {"Arrived", "NodeLost"},
    "replan": MOVED,
    "sbon": MOVED | {"Arrived", "NodeLost"},
    "sqpr": MOVED,
}
ANYWHERE = ("local", "other", "auto1")
# Whatever the load is, it is too much.
SCALING = {"start": "local", "max": 2, "above": 1e-6, "below": 0, "after": "1 second"}


def job(folder: Path, nodes: Mapping[str, NodeDef], control: dict[str, object]) -> Job:
    queries = {name: QueryDef.model_validate({"sql": sql, "node": "local"}) for name, sql in QUERIES.items()}
    results, steered = ResultsDef.model_validate({}), ControlDef.model_validate(control)
    return Job(folder / "store", 50, {"s": stream(folder)}, dict(nodes), queries, None, results, steered)


def feed_until_moved(running: Towpath, folder: Path, to: Container[str] = ANYWHERE) -> pa.Table:
    """Everything that was fed."""
    chunks: list[pa.Table] = []
    while len(chunks) < MOST_CHUNKS and not passed(running, to):
        chunks.append(arrive(folder, len(chunks), ROWS))
        running.run(seconds=0.2)
    return pa.concat_tables(chunks)


def passed(running: Towpath, to: Container[str] = ANYWHERE) -> list[int]:
    """The moves to some nodes whose fence everybody has passed."""
    state = running.engine.controller.state
    target = {move.id: state.carriers[state.fragments[move.target].carrier].node for move in state.moves.values()}
    done = [move.id for move in state.moves.values() if move.step in (MoveStep.DRAINING, MoveStep.DONE)]
    return [number for number in done if target[number] in to]


def places(running: Towpath) -> set[str]:
    assert running.loop is not None
    return {running.loop.situation.node_of(name) for name in running.loop.situation.fragments}


def test_fragments_move_and_every_answer_stays_right(tmp_path: Path) -> None:
    with start(job(tmp_path, TWO, CONTROL)) as running:
        fed = feed_until_moved(running, tmp_path)
        running.drain()
        assert passed(running), "the policy has moved nothing"
        assert places(running) == {"local", "other"}
        assert running.loop is not None and running.loop.situation.stream_rates["s"] > 0
        assert wrong(running, QUERIES, fed) == []


def feed(running: Towpath, folder: Path, chunks: range) -> None:
    for n in chunks:
        arrive(folder, n, ROWS)
        running.run(seconds=0.2)


@pytest.mark.parametrize("policy", policies.available())
def test_actors_hear_what_they_can_rely_on(tmp_path: Path, policy: str) -> None:
    """As in the simulator and without Spark: tests/policies/test_contract.py."""
    records: list[Record] = []
    control = {"policy": policy, "options": RESTLESS.get(policy, {}), "every": "200 ms"}
    with start(job(tmp_path, TWO, control)) as running:
        assert running.loop is not None
        running.loop._start = recording(running.loop._start, records)
        if policy in RESTLESS:
            fed = feed_until_moved(running, tmp_path, to=("other",)).num_rows // ROWS
        else:
            fed = 10
            feed(running, tmp_path, range(fed))
        running.engine.drain_node("other")
        feed(running, tmp_path, range(fed, fed + 10))
        pending = [0] * (len(records) - 1) + [len(running.loop._under_way)]
    assert [v for record, n in zip(records, pending, strict=True) for v in violations(record, n)] == []
    assert {kind for record in records for kind in record.kinds()} >= HEARS.get(policy, set())


def test_tiers_of_managers_move_load_from_group_to_group(tmp_path: Path) -> None:
    """Two nodes each have a manager, the managers one above them. All load is in one group: only that one can know."""
    tiered = {**CONTROL, "options": {**OPTIONS, "fan_out": 2}}
    group = ("third", "fourth")
    with start(job(tmp_path, {**TWO, **dict.fromkeys(group, EMBEDDED)}, tiered)) as running:
        fed = feed_until_moved(running, tmp_path, to=group)
        running.drain()
        assert passed(running, to=group), "nothing was moved to the other group"
        assert wrong(running, QUERIES, fed) == []


@pytest.mark.long
def test_a_node_is_started_for_the_load_and_gone_with_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with start(job(tmp_path, ONE, {**CONTROL, "scaling": SCALING})) as running:
        fed = feed_until_moved(running, tmp_path)
        running.drain()
        assert places(running) == {"local", "auto1"}
        assert [s.alive for s in server.servers().values()] == [True]
        assert wrong(running, QUERIES, fed) == []
    assert server.servers() == {}
