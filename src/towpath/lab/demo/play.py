"""One performance: the market runs, a rush comes to one node and is spread, queries come and go, all is checked."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa

from towpath.api.figures import Figures
from towpath.api.monitor import Monitor, Rate
from towpath.api.reader import Reader
from towpath.api.running import start
from towpath.control.journal.journal import Journal
from towpath.control.state.fence import UNDECIDED, MoveStep
from towpath.control.state.records import MoveRecord
from towpath.job import QueryDef
from towpath.lab.demo.market import RUSHED, Market
from towpath.lab.usage import resident_bytes
from towpath.results import Part, read
from towpath.runtime.carriers import CarrierEvent
from towpath.schema import Catalog
from towpath.store.layout import Store
from towpath.verify import Checked, Oracle
from towpath.verify.answer import AnswerVersion

SAMPLE_ROWS = 5
SHOWN_MOVES = 5
PUNCTUAL_S = 3.0  # so far behind the market a carrier may be
ARRIVING_S = 15.0  # at most, for the first moves to arrive when the market closes: a slow machine begins late


@dataclass(frozen=True)
class NodeFigures:
    node: str
    fragments: int
    load: float  # share of its cores


@dataclass(frozen=True)
class Scene:
    """What there is to see at a moment."""

    figures: Figures
    nodes: tuple[NodeFigures, ...]
    moving: int  # fragments on their way to another node
    moved: int  # those that answer from there
    newest_moves: tuple[str, ...]
    elapsed_s: float
    events: int  # of the market that every carrier has processed
    events_per_s: float
    behind_s: float  # the market's own time against the clock
    submitted: int
    withdrawn: int
    heap_bytes: int = 0
    resident_bytes: int = 0


@dataclass
class Punctuality:
    """How soon a performance answers, and how far it falls behind. Seconds since its start."""

    started: float
    first_results_s: float | None = None  # when the first carrier had put something out
    caught_up_s: float | None = None  # when all carriers were less than `PUNCTUAL_S` behind
    most_behind_s: float = 0.0  # from then on, while the market was open

    def note(self, now: float, begun: bool, behind_s: float | None) -> None:
        """`behind_s` of the slowest carrier, if all have begun."""
        if begun and self.first_results_s is None:
            self.first_results_s = now - self.started
        if behind_s is not None and behind_s < PUNCTUAL_S and self.caught_up_s is None:
            self.caught_up_s = now - self.started
        if behind_s is not None and self.caught_up_s is not None:
            self.most_behind_s = max(self.most_behind_s, behind_s)


class DemoRun:
    def __init__(self, market: Market, store: Path, cores: int, started: float) -> None:
        """Starts Spark and everything; `started` says when the user did."""
        self._market = market
        self.punctual = Punctuality(started)
        self._store = store
        self._running = start(market.job(store, cores))
        self._monitor = Monitor(self._running.engine.controller, Store(store))
        self._rate = Rate()
        # The market opened when the job began, before its carriers were started.
        with closing(Journal(Store(store).journal, read_only=True)) as journal:
            self._begun = time.monotonic() - (time.time() - journal.anchor_us / 1e6)
        self._submitted = self._withdrawn = 0

    def run(self, look: Callable[[], None]) -> None:
        """`look` is called a few times a second."""

        begun, arrived = threading.Event(), threading.Event()

        def watch(events: list[CarrierEvent]) -> None:
            self._monitor.hear(events)
            self._note_punctuality()
            if all(carrier.last >= 0 for carrier in self._running.engine.carriers):
                begun.set()
            steps = {move.step for move in self._running.engine.controller.state.moves.values()}
            if steps & {MoveStep.DRAINING, MoveStep.DONE} or not steps & UNDECIDED:
                arrived.set()
            else:
                arrived.clear()
            look()

        def run_until(second: float, stopped: threading.Event | None = None) -> None:
            left = self._begun + second - time.monotonic()
            self._running.run(seconds=max(0.0, left), stopped=stopped, watch=watch)

        earliest, latest = self._market.peak_s
        run_until(earliest)
        run_until(latest, begun)  # a slow machine is given time to start everything before the rush
        # Together: a policy begins anew when queries have come or gone, and then has to see for a while what they do.
        self._change_queries()
        self._peak()
        run_until(self._market.seconds)
        run_until(self._market.seconds + ARRIVING_S, arrived)

    def _note_punctuality(self) -> None:
        now, carriers = time.monotonic(), self._running.engine.carriers
        reached = [c.newest_us for c in carriers if self._running.engine.controller.runs(c.id)]
        times = [us for us in reached if us is not None]
        open_s = min(now - self._begun, self._market.seconds)
        behind_s = open_s - self._market.seconds_until(min(times)) if times and len(times) == len(reached) else None
        self.punctual.note(now, bool(times), behind_s)

    def scene(self) -> Scene:
        figures = self._monitor.figures()
        now = time.monotonic()
        elapsed_s = now - self._begun
        events = self._market.events(figures.event_us)
        behind_s = min(elapsed_s, self._market.seconds) - self._market.seconds_until(figures.event_us)
        rate = self._rate.note(now, events)
        moves = list(self._running.engine.controller.state.moves.values())
        return Scene(
            figures,
            tuple(self._nodes()),
            sum(move.step in UNDECIDED for move in moves),
            sum(move.step in (MoveStep.DRAINING, MoveStep.DONE) for move in moves),
            tuple(self._move_text(move) for move in moves[-SHOWN_MOVES:]),
            elapsed_s,
            events,
            rate,
            max(0.0, behind_s),
            self._submitted,
            self._withdrawn,
        )

    def _nodes(self) -> Iterator[NodeFigures]:
        assert self._running.loop is not None, "the market has a policy"
        situation = self._running.loop.situation
        places = Counter(map(situation.node_of, situation.fragments))
        for node in situation.cores:
            yield NodeFigures(node, places[node], situation.load(node))

    def _move_text(self, move: MoveRecord) -> str:
        state = self._running.engine.controller.state
        source, target = state.fragments[move.source], state.fragments[move.target]
        here, there = (state.carriers[f.carrier].node for f in (source, target))
        names = {state.queries[p.query].name for p in state.parts.values() if p.fragment == source.id}
        return f"{', '.join(sorted(names))}: {here} -> {there}, {move.step} ({move.reason})"

    def sample(self) -> tuple[str, pa.Table]:
        """A query and its newest results."""
        name, sql = next(iter(self._market.queries.items()))
        rows = self._running.results(name)
        return sql, rows.slice(max(0, rows.num_rows - SAMPLE_ROWS))

    def with_memory(self) -> Scene:
        """The same, with what it takes; finding that out takes a moment."""
        return replace(self.scene(), heap_bytes=self._running.engine.heap_bytes, resident_bytes=resident_bytes())

    def drain(self) -> None:
        self._running.drain(self._monitor.hear)

    def stop(self) -> None:
        self._running.stop()

    def check(self) -> Iterator[Checked]:
        with self._market.recorded() as recorded:
            yield from check(Reader(self._store), self._running.job.catalog, recorded)

    def _peak(self) -> None:
        rush = {name: {"sql": sql, "node": RUSHED, "from": "now"} for name, sql in self._market.rush.items()}
        self._running.submit_all({name: QueryDef.model_validate(query) for name, query in rush.items()})
        self._submitted += len(rush)

    def _change_queries(self) -> None:
        for name in self._market.late_queries:
            self._running.submit(name, self._market.queries[name])
            self._submitted += 1
        for name in self._market.leaving_queries:
            self._running.withdraw(name)
            self._withdrawn += 1


def check(reader: Reader, catalog: Catalog, recorded: duckdb.DuckDBPyConnection) -> Iterator[Checked]:
    """All queries of a store against DuckDB's answers to the same SQL over the recorded streams, as the checks end."""

    def compare(name: str, versions: Sequence[AnswerVersion], parts: list[Part]) -> Checked:
        with recorded.cursor() as database:
            return Oracle(catalog, lambda _: database).check(name, versions, read(parts))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pending = [
            pool.submit(compare, q.name, reader.versions(q.name), reader.parts(q.name)) for q in reader.queries()
        ]
        for future in pending:
            yield future.result()
