"""towpath from Python: the same verbs as the command line.

import towpath as tp

with tp.start("market.yaml") as market:
    market.submit("hot", "SELECT auction, price FROM bids WHERE price > 900")
    market.run(seconds=30)
    print(market.results("hot").to_pandas())
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from towpath import job as jobs
from towpath.api.autopilot import local_nodes, loop_of, started_before
from towpath.api.checking import copied_lookups, parse_all, parse_good, placed, refuse, sink_mistakes
from towpath.api.frame import Frame
from towpath.api.reader import POLL_S, Reader, rejected_of
from towpath.api.steering import places_of, policy_of, topology_of
from towpath.config.nodes import ConnectNode, NodeDef
from towpath.config.settings import NOW, Start, start_of
from towpath.config.sqlfiles import Contents
from towpath.control.act.engine import Engine
from towpath.control.act.folder import QueryFolder
from towpath.control.act.housekeeping import Housekeeper
from towpath.control.act.loop import Loop
from towpath.control.act.self_monitor import SelfMonitor
from towpath.control.decide import edits
from towpath.control.decide.requests import Request, request_of
from towpath.control.journal.journal import Journal
from towpath.control.observe.idle import Patience
from towpath.control.state.history import EventKind
from towpath.control.state.records import State
from towpath.errors import JobError, ProblemsError, QueryError, RuntimeFailure, StoreError, TowpathError
from towpath.job import Job, QueryDef
from towpath.lang import parse
from towpath.plan import CarrierKinds
from towpath.results import read
from towpath.results.log import newest, segments
from towpath.runtime.carriers import CarrierEvent, Runtime
from towpath.runtime.remote_node import RemoteNode
from towpath.schema import SchemaClass
from towpath.spark.connect import connect, listens
from towpath.spark.kafka import jar_settings, with_connector
from towpath.spark.node import NodeSettings, open_session
from towpath.spark.runtime import SparkRuntime
from towpath.store.layout import Store
from towpath.store.private import private_umask
from towpath.streams.definition import StreamDef
from towpath.streams.rejected import Rejected, rejected
from towpath.streams.sources import KafkaSource
from towpath.streams.versions import StreamVersion
from towpath.tables.watching import Tables, troubles_of

__all__ = ["Reader", "Towpath", "start"]

log = logging.getLogger(__name__)

Watch = Callable[[list[CarrierEvent]], None]


class Towpath:
    """A job that runs. Made by `start`; stops at the end of its `with` block and goes on from there the next time."""

    def __init__(
        self,
        job: Job,
        stack: ExitStack,
        engine: Engine,
        housekeeper: Housekeeper,
        self_monitor: SelfMonitor,
        loop: Loop | None = None,
        tables: Tables | None = None,
    ) -> None:
        self.job = job
        self._tables = tables
        self.engine = engine
        self.loop = loop  # who moves fragments, if the job file has a control section
        self.housekeeper = housekeeper
        self.refused: list[ProblemsError] = []  # bad files of the queries folder, newest last
        self._stack = stack
        self._self_monitor = self_monitor
        self._stopped = False
        self._begun = time.monotonic()
        self._folder = QueryFolder(job.queries_folder, job.folder) if job.queries_folder else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, type_: object, error: BaseException | None, trace: object) -> None:
        self.stop(f": {str(error).splitlines()[0]}" if isinstance(error, TowpathError) else "")

    def stop(self, why: str = "") -> None:
        with self._stack:
            if self._stopped:
                return
            self._stopped = True
            try:
                self._record_news()
                self.engine.add_history(EventKind.CONTROLLER_STOPPED, f"the controller was stopped{why}")
            except StoreError as error:
                log.warning("on the way out: %s", error)  # it ends all the same

    # --- queries -----------------------------------------------------------------------------------------------------

    def submit(
        self,
        name: str,
        sql: str,
        *,
        start: Start | datetime | str = NOW,
        sink: dict[str, str] | None = None,
        copies: int = 1,
        fragments: str | None = None,
    ) -> None:
        """Starts a query, or replaces the one of that name.

        Raises QueryError with everything that is wrong with its SQL, JobError with what is wrong beside that.

        `start` is "now", "beginning" or an event time: from when on it answers (docs/job-file.md, From when on).
        With several copies it runs on as many nodes, and its results go on without a gap when one of them dies.
        `fragments` is "one_per_query" or "one_per_operator"; by default it is what the job says.
        """
        said = {"sql": sql, "sink": sink, "copies": copies, "fragments": fragments}
        defined = self.definitions({name: {key: value for key, value in said.items() if value is not None}})
        query = parse(sql, self.job.catalog, name, self.job.views)
        refuse([*sink_mistakes(query, defined[name]), *copied_lookups(query, copies)])
        request = request_of(query, defined[name], self.job.fragments, "api")
        self.engine.submit([dataclasses.replace(request, start=start_of(start))])

    def definitions(self, queries: Mapping[str, Any], folder: Path | None = None) -> dict[str, QueryDef]:
        """Queries in the words of a job file in `folder`, checked beside those that stand. Raises JobError."""
        state = self.engine.controller.state
        others = [q for q in state.queries.values() if q.running and q.name not in queries and q.sink is not None]
        sinks = {q.sink["path"]: q.name for q in others if q.sink and "path" in q.sink}
        return jobs.queries(queries, folder or Path(), self.engine.controller.known.nodes, sinks, self.job.streams)

    def submit_all(self, definitions: dict[str, QueryDef]) -> None:
        """Starts queries together, so that they may share what is new. Raises QueryError with what is wrong in any."""
        made = parse_all(dataclasses.replace(self.job, queries=definitions, queries_folder=None, folder=Contents()))
        fragments = self.job.fragments
        self.engine.submit([request_of(query, definitions[name], fragments, "api") for name, query in made.items()])

    def withdraw(self, name: str) -> None:
        self.engine.withdraw(name)

    def move(self, name: str, node: str | None = None, *, carriers: CarrierKinds | str | None = None) -> list[int]:
        """Begins to move a query to another node, or to "compiled" or "universal" carriers where it is.

        It goes on answering meanwhile. Raises MoveRefused.

        Returns the numbers of the moves, one for each fragment.
        """
        return self.engine.move(name, node, carriers=None if carriers is None else CarrierKinds(carriers))

    def results(self, name: str) -> pa.Table:
        """Everything the query has answered so far, in the order of result time."""
        return read(self.engine.answers.parts(name))

    def frame(self, name: str) -> Frame:
        """The same for notebooks, pandas and Polars."""
        return Frame(name, self.results(name))

    def rejected(self, stream: str | None = None) -> list[Rejected]:
        """Rows and files that were not taken in, of one stream or of all: each with its place and the reason."""
        return rejected_of(rejected(Store(self.job.store).rejected), stream, self.job.streams, self.job.store)

    @property
    def late(self) -> dict[str, int]:
        """By stream, the rows that came too late for joins and aggregates, since the job was first started."""
        return {name: stream.late for name, stream in sorted(self.engine.controller.state.streams.items())}

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
        around = self.engine.guard.around
        with around("writing down what happened to the controller"):
            self._record_news()
        if self.loop is not None:
            with around("the policy"):
                self.loop.step(events, time.monotonic() - self._begun)
        if self._tables is not None:
            with around("looking at the tables"):
                self._watch_tables(self._tables)
        if self._folder is not None:
            with around("looking into the queries folder"):
                self._watch_folder(self._folder)
        self.engine.memory.fed(self.housekeeper.finished())
        self.engine.guard.note("feeding sinks and compacting results", self.housekeeper.trouble)
        if watch is not None:
            with around("showing what the job does"):
                watch(events)

    def drain(self, watch: Watch | None = None) -> int | None:
        """Processes everything the streams have and closes all windows. Returns how far event time has gone for that.

        Older rows that come afterwards are late. Where data goes on, `catch_up` is the one to use.
        """
        self._finished(self.engine.finishing.drain(), watch)
        return self.engine.finishing.closed_us

    def catch_up(self, watch: Watch | None = None) -> None:
        """Processes everything the streams have, and leaves windows open that more rows could fall into."""
        self._finished(self.engine.finishing.finish(), watch)

    def _finished(self, events: list[CarrierEvent], watch: Watch | None) -> None:
        if watch is not None:
            watch(events)
        self.housekeeper.feed_sinks()

    def _record_news(self) -> None:
        for kind, text in self._self_monitor.news():
            self.engine.add_history(kind, text)

    def _watch_tables(self, tables: Tables) -> None:
        news = tables.look()
        for text in news.published:
            self.engine.add_history(EventKind.TABLE_CHANGED, text)
        for part, trouble in troubles_of(news):
            self.engine.guard.note(part, trouble)

    def _watch_folder(self, folder: QueryFolder) -> None:
        changes = folder.changes()
        if changes.problems:
            self.refuse(QueryError("not taken in:", changes.problems))
        for name, sql in changes.written.items():
            with self.engine.guard.around(f"taking in the query of {folder.file(name).name}"):
                self._take_in(name, sql, folder.file(name))
        for name in changes.removed:
            if self.engine.controller.queries.running.get(name) is not None:
                self.engine.withdraw(name, "its file was deleted")

    def _take_in(self, name: str, sql: str, file: Path) -> None:
        try:
            query, fragments = parse(sql, self.job.catalog, name, self.job.views), self.job.fragments
            self.engine.submit([Request(query, NOW, origin="job", fragments=fragments)])
        except QueryError as error:
            self.refuse(QueryError("not taken in:", placed(error, file)))

    def refuse(self, error: ProblemsError) -> None:
        """Reports what was not done, of the queries folder or of the job file; all else goes on."""
        log.warning("%s", error)
        self.refused.append(error)
        self.engine.add_history(EventKind.REFUSED, str(error))


def start(job: Job | str | Path) -> Towpath:
    """Starts a job: from the beginning, or where its store says it was."""
    if not isinstance(job, Job):
        job = jobs.load(Path(job))
    queries, bad = parse_good(job)
    requests = [request_of(query, job.queries[name], job.fragments) for name, query in queries.items()]
    policy, places = None if job.control is None else policy_of(job, job.control), places_of(job)
    with ExitStack() as stack:
        store = Store(job.store)
        stack.enter_context(private_umask())
        stack.enter_context(store.lock())
        journal = Journal(store.journal)
        tables = Tables(store, job.tables)
        tables.open()
        known = journal.load()
        versions = edits.versions(job, [StreamVersion.from_json(said) for said in journal.streams], known)
        job = dataclasses.replace(job, streams=versions.streams)
        requests = edits.requests(job, requests, known)
        before = edits.DeclaredJob(**journal.said)
        ignored = edits.ignored(job, before, known)
        opening = _opening(job, requests, store, journal, known)
        journal.streams = [version.to_json() for version in versions.all]
        journal.said = dataclasses.asdict(edits.said(job, before, known))
        store.drain.unlink(missing_ok=True)
        store.drop_trials()
        open_node = partial(_open, job=job, streams=versions.readable, store=store, anchor_us=journal.anchor_us)
        opened: dict[str, Runtime] = {name: open_node(name, node) for name, node in job.nodes.items()}
        for node in opened.values():
            stack.callback(node.close)  # also when the engine that closes them never comes to be
        _wait_open(opened, again=bool(known.carriers))
        starter = local_nodes(job.control, store.root, open_node)
        stack.enter_context(starter)
        scaled = started_before(known, job.nodes)
        for name in scaled:
            starter.start(name).result()
        nodes = opened | {name: starter.open(name) for name in scaled}
        retention_us = job.results.retention_us
        engine = Engine(
            store,
            journal,
            nodes,
            job.catalog,
            opening=opening,
            places=places,
            patience=_patience(versions.readable),
            retention_us=retention_us,
        )
        stack.enter_context(engine)
        self_monitor = stack.enter_context(SelfMonitor(store.root))
        housekeeper = stack.enter_context(Housekeeper(store, retention_us))
        loop = None
        if job.control is not None and policy is not None:
            topology = places.capacities.topology
            loop = loop_of(job, job.control, policy, engine, starter, scaled, topology)
            places.capacities.measures = loop.measures
            stack.callback(loop.close)
        running = Towpath(job, stack.pop_all(), engine, housekeeper, self_monitor, loop, tables)
        if bad:
            running.refuse(QueryError("not taken in:", bad))
        if ignored:
            running.refuse(JobError("edits of the job file that change nothing:", ignored))
        return running
    raise AssertionError("unreachable")


def _opening(job: Job, requests: Sequence[Request], store: Store, journal: Journal, known: State) -> edits.Opening:
    before = edits.DeclaredJob(**journal.said)
    stopped = journal.latest(EventKind.CONTROLLER_STARTED, EventKind.CONTROLLER_STOPPED) is EventKind.CONTROLLER_STOPPED

    def all_heard(carrier: str) -> bool:
        """One inside of a process that was stopped in order does nothing any more."""
        record = known.carriers[carrier]
        ended = stopped and before.places.get(record.node) == edits.HERE
        return ended and newest(segments(store.results(carrier))) <= record.last

    staying = {*job.queries, *job.folder.names}  # a bad file changes nothing
    elsewhere = edits.elsewhere(job, before)
    return edits.Opening(_begins(journal), job.catalog, requests, staying, elsewhere, all_heard)


def _patience(streams: Iterable[StreamDef]) -> dict[SchemaClass, Patience]:
    """Streams of a class are read together: they are silent when all of them are, each for as long as it says."""
    together: dict[SchemaClass, list[StreamDef]] = {}
    for stream in streams:
        together.setdefault(stream.stream.schema_class, []).append(stream)
    return {
        schema_class: Patience(
            _longest(s.idle_after_ms for s in streams),
            _longest(s.close_after_ms for s in streams),
            max(s.stream.delay_us for s in streams),
        )
        for schema_class, streams in together.items()
    }


def _longest(times_ms: Iterable[int]) -> float | None:
    known = list(times_ms)
    return None if 0 in known else max(known) / 1000


def _begins(journal: Journal) -> str:
    match journal.latest(EventKind.CONTROLLER_STARTED, EventKind.CONTROLLER_STOPPED):
        case None:
            return "the controller was started"
        case EventKind.CONTROLLER_STOPPED:
            return "the controller was started again, and goes on where it was stopped"
        case _:
            return "the controller was started again: the one before ended without being stopped, and this one goes on"


def _open(name: str, node: NodeDef, *, job: Job, streams: Sequence[StreamDef], store: Store, anchor_us: int) -> Runtime:
    away = {other: topology_of(job).latency(name, other) or 0.0 for other in job.nodes} if job.inject else {}
    runtime = partial(
        SparkRuntime, store=store, streams=streams, trigger_ms=job.trigger_ms, anchor_us=anchor_us, away=away
    )
    kafka = any(isinstance(s.source, KafkaSource) for s in streams)
    ready = partial(with_connector, node=name) if kafka else lambda session: session
    if isinstance(node, ConnectNode):
        return RemoteNode(
            name,
            lambda: runtime(ready(connect(name, node, store.root))),
            lambda: listens(node.address),
            node.lost_after_ms / 1000,
        )
    spark = {**jar_settings(node.jars, node.spark, kafka=kafka), **node.spark}
    return runtime(ready(open_session(NodeSettings(node.cores, node.memory, spark), store.logs)))


def _wait_open(nodes: Mapping[str, Runtime], *, again: bool) -> None:
    """A job that has run before goes on without the nodes that do not answer, as long as one does."""
    missing: list[str] = []
    for node in nodes.values():
        try:
            if isinstance(node, RemoteNode):
                node.wait_open()
        except RuntimeFailure as error:
            missing.append(str(error))
    if missing and (not again or len(missing) == len(nodes)):
        raise RuntimeFailure("\n".join(missing))
