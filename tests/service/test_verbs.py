"""The verbs on a real engine, whose nodes do nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.nodes import quiet_node

from towpath import job as jobs
from towpath.api.monitor import Monitor
from towpath.api.running import Towpath
from towpath.control.act.engine import Engine
from towpath.control.act.housekeeping import Housekeeper
from towpath.control.act.self_monitor import SelfMonitor
from towpath.control.journal.journal import Journal
from towpath.errors import JobError, MoveRefused, NodeRefused, ProblemsError, QueryError, UnknownQueryError
from towpath.runtime.carriers import BatchDone, CarrierFailed, TriedOut
from towpath.service.messages import Drain, LookRequest, Migrate, Readiness, Submit, Withdraw
from towpath.service.verbs import JobVerbs
from towpath.store.layout import Store

JOB = """
streams: {clock: {source: {type: rate, rate: 100}}}
nodes:
  left: {type: embedded, cores: 1}
  right: {type: embedded, cores: 1}
"""
FILTER = "SELECT value FROM clock WHERE value > 1"
UNION = "SELECT value FROM clock WHERE value > 5 UNION ALL SELECT value FROM clock WHERE value > 6"


@pytest.fixture
def nodes() -> dict[str, Any]:
    return {"left": quiet_node(), "right": quiet_node()}


@pytest.fixture
def running(tmp_path: Path, nodes: dict[str, Any]) -> Iterator[Towpath]:
    (tmp_path / "job.yaml").write_text(JOB)
    job = jobs.load(tmp_path / "job.yaml")
    store = Store(job.store)
    with ExitStack() as stack:
        engine = stack.enter_context(Engine(store, Journal(store.journal), nodes, job.catalog))
        yield Towpath(job, stack, engine, Housekeeper(store, None), SelfMonitor(tmp_path))


@pytest.fixture
def verbs(running: Towpath) -> JobVerbs:
    store = Store(running.job.store)
    return JobVerbs(running, Monitor(running.engine.controller, store), store)


def submit(verbs: JobVerbs, **queries: dict[str, Any] | str) -> Any:
    return verbs.submit(Submit({n: {"sql": q} if isinstance(q, str) else q for n, q in queries.items()}, "/folder"))


def live(running: Towpath, nodes: dict[str, Any], batch: int = 0) -> None:
    """Every carrier has done a micro-batch with its table of now, each a minute of event time after the last."""
    for carrier in list(running.engine.controller.state.carriers.values()):
        newest = (1_000_000 + batch * 60_000_000,)
        done = BatchDone(carrier.id, batch, carrier.version, newest, None, 1, (), 0, 0.1, {}, batch == 0)
        nodes[carrier.node].events.return_value = [done]
        running.engine.poll()
        nodes[carrier.node].events.return_value = []


def test_queries_come_together(verbs: JobVerbs, nodes: dict[str, Any]) -> None:
    taken = submit(verbs, q=FILTER, both=UNION)
    assert [(q.name, q.state, q.fragments, q.nodes) for q in taken] == [
        ("q", "starting", [1], ["left"]),
        ("both", "starting", [2, 3], ["left"]),
    ]
    nodes["left"].start.assert_called_once()
    assert [q.name for q in verbs.queries()] == ["both", "q"]


def test_all_mistakes_at_once_and_nothing_is_taken_in(verbs: JobVerbs) -> None:
    with pytest.raises(JobError) as refused:
        submit(
            verbs,
            **{
                "no name!": FILTER,
                "lost": {"sql": FILTER, "node": "middle"},
                "sunk": {"sql": FILTER, "sink": {"type": "bucket"}},
                "blank": " ",
                "fine": FILTER,
            },
        )
    assert len(refused.value.problems) == 4
    with pytest.raises(QueryError) as wrong:
        submit(verbs, one="SELECT valu FROM clock", two="SELECT value FROM clok", fine=FILTER)
    assert [p.excerpt.splitlines()[-1].strip() for p in wrong.value.problems] == ["^^^^", "^^^^"]
    assert verbs.queries() == []


def test_a_sink_belongs_to_one_query(verbs: JobVerbs) -> None:
    sink = {"type": "parquet", "path": "out"}
    submit(verbs, one={"sql": FILTER, "sink": sink})
    with pytest.raises(JobError, match="/folder/out is already the sink of the query one"):
        submit(verbs, two={"sql": FILTER, "sink": sink})
    submit(verbs, one={"sql": UNION, "sink": sink})  # the one that is replaced leaves it


def test_withdrawing_is_all_or_nothing(verbs: JobVerbs) -> None:
    submit(verbs, one=FILTER, two=UNION)
    with pytest.raises(ProblemsError) as refused:
        verbs.withdraw(Withdraw(["one", "tow", "nobody"]))
    assert [p.hint for p in refused.value.problems] == [
        "did you mean two?",
        "`towpath status --queries` lists those that do",
    ]
    assert len(verbs.queries()) == 2
    assert verbs.withdraw(Withdraw(["two", "one", "two"])) == ["two", "one"]
    assert verbs.queries() == []


def test_a_query_moves_with_all_its_fragments(verbs: JobVerbs, running: Towpath, nodes: dict[str, Any]) -> None:
    submit(verbs, both=UNION)
    live(running, nodes)
    moves = verbs.migrate(Migrate("both", "right"))
    assert [(m.fragment, m.source, m.target, m.step, m.used_by) for m in moves] == [
        (1, "left", "right", "warming", "both"),
        (2, "left", "right", "warming", "both"),
    ]
    assert [m.number for m in verbs.status().moves] == [1, 2]
    assert verbs.moves([2, 99]) == moves[1:]


def test_one_fragment_moves_by_its_number(verbs: JobVerbs, running: Towpath, nodes: dict[str, Any]) -> None:
    submit(verbs, both=UNION)
    live(running, nodes)
    assert [m.fragment for m in verbs.migrate(Migrate("2", "right"))] == [2]


def test_a_query_changes_its_kind_of_carrier(verbs: JobVerbs, running: Towpath, nodes: dict[str, Any]) -> None:
    submit(verbs, one=FILTER)
    live(running, nodes)
    (move,) = verbs.migrate(Migrate("one", carriers="universal"))
    assert (move.source, move.target, move.carriers) == ("left", "left", ["c0 (compiled)", "c1 (universal)"])


def test_a_move_goes_somewhere(verbs: JobVerbs) -> None:
    submit(verbs, one=FILTER)
    with pytest.raises(MoveRefused, match="nothing says where to"):
        verbs.migrate(Migrate("one"))


@pytest.mark.parametrize(
    ("subject", "node", "error", "said"),
    [
        ("both", "middle", MoveRefused, "there is no node 'middle'; the job has left, right"),
        ("both", "left", MoveRefused, "fragment 1 is on node left already"),
        ("99", "right", MoveRefused, "no query uses fragment 99"),
        ("bth", "right", UnknownQueryError, "did you mean both?"),
    ],
)
def test_moves_are_refused_with_the_reason(
    verbs: JobVerbs, subject: str, node: str, error: type[Exception], said: str
) -> None:
    submit(verbs, both=UNION)
    with pytest.raises(error) as refused:
        verbs.migrate(Migrate(subject, node))
    assert said in str(refused.value)


def test_draining_goes_on_with_every_poll(verbs: JobVerbs, running: Towpath, nodes: dict[str, Any]) -> None:
    submit(verbs, q=FILTER)
    assert verbs.drain(Drain("left")).state == "draining"
    assert verbs.status().moves == []
    live(running, nodes)
    assert [m.reason for m in verbs.status().moves] == ["left is being drained"]
    with pytest.raises(NodeRefused, match="towpath drain left --undo"):
        submit(verbs, new={"sql": UNION, "node": "left"})
    assert verbs.drain(Drain("left", undo=True)).state == "open"


def test_a_drained_node_is_at_rest(verbs: JobVerbs, running: Towpath, nodes: dict[str, Any]) -> None:
    submit(verbs, q=FILTER)
    live(running, nodes)
    verbs.withdraw(Withdraw(["q"]))
    live(running, nodes, batch=1)
    verbs.drain(Drain("left"))
    running.engine.poll()
    nodes["left"].stop.assert_called_once_with("c0")
    (left, _) = verbs.status().nodes
    assert (left.state, left.carriers) == ("drained", 0)


def test_the_status_of_a_job(verbs: JobVerbs, running: Towpath) -> None:
    submit(verbs, q=FILTER)
    status = verbs.status()
    assert (status.pid, status.store, status.queries) == (os.getpid(), str(running.job.store), 1)
    assert [(n.name, n.type, n.state, n.fragments) for n in status.nodes] == [
        ("left", "embedded", "open", 1),
        ("right", "embedded", "open", 0),
    ]
    assert [(c.id, c.node, c.kind, c.runs) for c in status.carriers] == [("c0", "left", "filter", True)]


def test_the_history_of_a_job(verbs: JobVerbs) -> None:
    submit(verbs, q=FILTER)
    assert [h.kind for h in verbs.history(LookRequest())] == ["submitted", "carrier started"]
    assert [h.kind for h in verbs.history(LookRequest(query="q"))] == ["submitted"]


def test_a_query_that_was_set_aside_is_listed_with_its_reason(
    verbs: JobVerbs, running: Towpath, nodes: dict[str, Any]
) -> None:
    submit(verbs, q=FILTER, other="SELECT value FROM clock WHERE value > 7")
    live(running, nodes)
    nodes["left"].events.return_value = [CarrierFailed("c0", "a fault")]
    running.poll()
    tries = [("a fault",), (None,), ("a fault",), (None,), ("a fault",)]  # both, none, the first, the other, both
    for (failure,) in tries:
        nodes["left"].events.return_value = [TriedOut("c0", failure)]
        running.poll()
    nodes["left"].events.return_value = []
    listed = [(q.name, q.state, q.failed) for q in verbs.queries()]
    assert listed == [("other", "standing", None), ("q", "set aside", "a fault")]
    assert verbs.status().aside == {"q": "a fault"}
    (again,) = submit(verbs, q=FILTER)
    assert again.state == "starting" and verbs.status().aside == {}


def test_a_job_that_works_is_ready(verbs: JobVerbs, running: Towpath) -> None:
    assert verbs.ready() == Readiness(True, "turns", "2 of 2 answer", "can be written")
    running.engine.controller.known.lost.add("left")
    assert verbs.ready() == Readiness(True, "turns", "1 of 2 answer", "can be written")
    running.engine.controller.known.lost.add("right")
    assert not verbs.ready().ready


def test_a_job_whose_journal_cannot_be_written_is_not_ready(verbs: JobVerbs, running: Towpath) -> None:
    running.engine._journal._db.execute("PRAGMA query_only = true")
    ready = verbs.ready()
    assert (ready.ready, ready.journal) == (False, "cannot be written")
    running.engine._journal._db.execute("PRAGMA query_only = false")


def test_how_long_micro_batches_took_is_counted(verbs: JobVerbs) -> None:
    assert (sum(verbs.durations().counts), verbs.durations().sum_s) == (0, 0.0)
