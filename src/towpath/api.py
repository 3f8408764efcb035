"""towpath from Python: the same verbs as the command line.

import towpath as tp

with tp.start("market.yaml") as market:
    market.submit("hot", "SELECT auction, price FROM bids WHERE price > 900")
    market.run(seconds=30)
    print(market.results("hot").to_pandas())
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pyarrow as pa

from towpath import job as jobs
from towpath.checking import parse_all
from towpath.control.engine import Engine, Request
from towpath.control.folder import QueryFolder
from towpath.control.housekeeping import Housekeeper
from towpath.control.journal import Journal
from towpath.errors import ProblemsError, QueryError
from towpath.job import Job, QueryDef
from towpath.lang import Query, parse
from towpath.nodes import ConnectNode, NodeDef
from towpath.reader import POLL_S, Reader
from towpath.results import read
from towpath.runtime.carriers import Event, Runtime
from towpath.spark.connect import connect
from towpath.spark.node import NodeSettings, open_session
from towpath.spark.runtime import SparkRuntime
from towpath.store import Store

__all__ = ["Reader", "Towpath", "start"]

log = logging.getLogger(__name__)

Watch = Callable[[list[Event]], None]


class Towpath:
    """A job that runs. Made by `start`; stops at the end of its `with` block and goes on from there the next time."""

    def __init__(self, job: Job, stack: ExitStack, engine: Engine, housekeeper: Housekeeper) -> None:
        self.job = job
        self.engine = engine
        self.housekeeper = housekeeper
        self.refused: list[ProblemsError] = []  # bad files of the queries folder, newest last
        self._stack = stack
        self._folder = QueryFolder(job.queries_folder) if job.queries_folder else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stack.close()

    # --- queries -----------------------------------------------------------------------------------------------------

    def submit(self, name: str, sql: str, *, from_now: bool = True, sink: dict[str, str] | None = None) -> None:
        """Starts a query, or replaces the one of that name. Raises QueryError with everything that is wrong with it."""
        self.engine.submit([Request(parse(sql, self.job.catalog, name), from_now, sink)])

    def withdraw(self, name: str) -> None:
        self.engine.withdraw(name)

    def move(self, name: str, node: str) -> None:
        """Begins to move a query to another node; it goes on answering meanwhile. Raises MoveRefused."""
        self.engine.move(name, node)

    def results(self, name: str) -> pa.Table:
        """Everything the query has answered so far, in the order of result time."""
        return read(self.engine.parts(name))

    # --- running -----------------------------------------------------------------------------------------------------

    def run(
        self, *, seconds: float | None = None, stopped: threading.Event | None = None, watch: Watch | None = None
    ) -> None:
        """Lets time pass: hears the carriers, watches the queries folder. Without `seconds`, until `stopped` is set."""
        end = None if seconds is None else time.monotonic() + seconds
        stopped = stopped or threading.Event()
        while not stopped.is_set() and (end is None or time.monotonic() < end):
            self.poll(watch)
            stopped.wait(POLL_S)

    def poll(self, watch: Watch | None = None) -> None:
        events = self.engine.poll()
        self._watch_folder()
        if watch is not None:
            watch(events)

    def drain(self, watch: Watch | None = None) -> None:
        """Processes everything the streams have and closes all windows."""
        events = self.engine.drain()
        if watch is not None:
            watch(events)
        self.housekeeper.feed_sinks()

    def _watch_folder(self) -> None:
        if self._folder is None:
            return
        changes = self._folder.changes()
        for name, sql in changes.written.items():
            try:
                self.engine.submit([Request(parse(sql, self.job.catalog, name), from_now=True, origin="job")])
            except QueryError as error:
                log.warning("%s was not taken in: %s", self._folder.file(name), error)
                self.refused.append(error)
        for name in changes.removed:
            if self.engine.controller.running(name) is not None:
                self.engine.withdraw(name)


def start(job: Job | str | Path) -> Towpath:
    """Starts a job: from the beginning, or where its store says it was."""
    if not isinstance(job, Job):
        job = jobs.load(Path(job))
    requests = _requests(job)
    with ExitStack() as stack:
        store = Store(job.store)
        stack.enter_context(store.lock())
        journal = Journal(store.journal)
        nodes: dict[str, Runtime] = {name: _open(name, node, job, store, journal) for name, node in job.nodes.items()}
        idle = [s.idle_after_ms for s in job.streams.values()]
        engine = Engine(store, journal, nodes, job.catalog, idle_after_s=None if 0 in idle else max(idle) / 1000)
        stack.enter_context(engine)
        housekeeper = stack.enter_context(Housekeeper(store, job.results.retention_us))
        for record in list(engine.controller.state.queries.values()):
            if record.running and record.origin == "job" and record.name not in job.queries:
                engine.withdraw(record.name)
        engine.submit(requests)
        return Towpath(job, stack.pop_all(), engine, housekeeper)
    raise AssertionError("unreachable")


def _open(name: str, node: NodeDef, job: Job, store: Store, journal: Journal) -> SparkRuntime:
    if isinstance(node, ConnectNode):
        session = connect(name, node, store.root)
    else:
        session = open_session(NodeSettings(node.cores, node.memory, node.spark), store.logs)
    return SparkRuntime(session, store, job.streams, trigger_ms=job.trigger_ms, anchor_us=journal.anchor_us)


def _requests(job: Job) -> list[Request]:
    """All queries of a job, checked; raises QueryError with the problems of all."""
    return [_request(query, job.queries[name]) for name, query in parse_all(job).items()]


def _request(query: Query, definition: QueryDef) -> Request:
    sink = None if definition.sink is None else {k: str(v) for k, v in definition.sink.model_dump().items()}
    return Request(query, definition.start == "now", sink, "job")
