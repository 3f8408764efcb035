"""A job without Spark behind a real service with its console: nodes are played, everything else is as it is.

python -m tests.console.crowd FOLDER [QUERIES] [PORT] serves one by hand, in a folder that is empty at first.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from towpath import job as jobs
from towpath.api.autopilot import local_nodes, loop_of
from towpath.api.monitor import Monitor
from towpath.api.running import Towpath
from towpath.api.steering import policy_of, topology_of
from towpath.config.nodes import ConnectNode
from towpath.console.console import Console
from towpath.console.look import JobLookout
from towpath.control.act import loop as loops
from towpath.control.act.engine import Engine
from towpath.control.act.housekeeping import Housekeeper
from towpath.control.act.loop import Loop
from towpath.control.act.self_monitor import SelfMonitor
from towpath.control.journal.journal import Journal
from towpath.job import Job
from towpath.plan.assignment import TableChange
from towpath.plan.templates import Template
from towpath.runtime.carriers import BatchDone, CarrierEvent, Runtime
from towpath.runtime.fake import FakeNode
from towpath.service import service_file
from towpath.service.messages import Submit
from towpath.service.request_queue import RequestQueue
from towpath.service.server import serving
from towpath.service.verbs import JobVerbs
from towpath.store.layout import Store

START_US = 1_767_225_600_000_000  # 2026-01-01
CHANNELS = ("web", "app", "phone", "shop")
POLL_S = 0.05


@dataclass
class Served:
    address: str
    token: str
    reader_token: str
    store: Path
    nodes: dict[str, PlayedNode]


class PlayedNode(FakeNode):
    """Its carriers do a micro-batch every second, of made-up rows."""

    def __init__(self, rows: int = 400, seconds: float = 0.3) -> None:
        super().__init__()
        self._rows, self._seconds = rows, seconds
        self._due: dict[str, float] = {}
        self._begun = time.monotonic()

    def start(self, carrier: str, template: Template, epoch: int, banned: Sequence[int] = ()) -> None:
        super().start(carrier, template, epoch, banned)
        self._due[carrier] = 0.0

    def publish(self, carrier: str, template: Template, version: int, change: TableChange) -> None:
        super().publish(carrier, template, version, change)
        self._due[carrier] = 0.0

    def events(self) -> list[CarrierEvent]:
        now = time.monotonic()
        due = [carrier for carrier in self.running if self._due.get(carrier, 0.0) <= now]
        self.news += [self._batch(carrier, now) for carrier in due]
        self._due |= dict.fromkeys(due, now + 1.0)
        return super().events()

    def _batch(self, carrier: str, now: float) -> BatchDone:
        number, inputs = self.next_batch(carrier), len(self.running[carrier].family.classes)
        reached = START_US + int((now - self._begun) * 1e6)
        phases = {"addBatch": int(self._seconds * 800)}
        return BatchDone(
            carrier=carrier,
            batch=number,
            version=self.versions[carrier],
            newest_us=(reached,) * inputs,
            watermark_us=reached - 4_000_000,
            rows=self._rows,
            late=({},) * inputs,
            state_rows=0,
            seconds=self._seconds,
            phases_ms=phases,
            first=number == 0,
            begins=(str(number),) * inputs,
            ends=(str(number + 1),) * inputs,
            bounds_us=(reached - 1_000_000,) * inputs,
        )


def job_file(folder: Path, nodes: Sequence[str], every: str) -> Path:
    streams = "\n".join(
        f"  {table}: {{source: {{type: auction, table: {table}, rate: 500, seed: 1, disorder: 2 seconds}}}}"
        for table in ("persons", "auctions", "bids")
    )
    named = "\n".join(f"  {node}: {{type: embedded, cores: 2}}" for node in nodes)
    file = folder / "market.yaml"
    measured = f"control: {{policy: static, every: {every}, change_carriers: false}}\n" if every else ""
    file.write_text(f"store: ./market.store\nstreams:\n{streams}\nnodes:\n{named}\n{measured}")
    return file


def some_queries(count: int) -> dict[str, dict[str, str]]:
    """As many queries, all different, on both nodes."""
    return {
        f"bids-{n:05d}": {
            "sql": f"SELECT auction, price FROM bids WHERE channel = '{CHANNELS[n % 4]}' AND price > {n / 20}",
            "node": "left" if n % 3 else "right",
        }
        for n in range(count)
    }


MIXED = {
    "high-bids": {"sql": "SELECT auction, bidder, price FROM bids WHERE price > 900", "node": "left"},
    "very-high-bids": {"sql": "SELECT auction, bidder, price FROM bids WHERE price > 990", "node": "left"},
    "new-in-california": {"sql": "SELECT id, name, city FROM persons WHERE state = 'CA'", "node": "left"},
    "bids-per-channel": {
        "sql": "SELECT channel, count(*) AS n, avg(price) AS mean_price\n"
        "FROM bids [RANGE 10 SECONDS SLIDE 5 SECONDS]\nGROUP BY channel",
        "node": "right",
    },
    "bids-on-clocks": {
        "sql": "SELECT b.auction, b.price, a.seller\n"
        "FROM bids [RANGE 10 SECONDS] AS b, auctions [RANGE 10 SECONDS] AS a\n"
        "WHERE b.auction = a.id AND a.item = 'clock' AND b.price > a.initial_bid",
        "node": "right",
    },
}


@contextmanager
def crowd(
    folder: Path, queries: dict[str, dict[str, str]] | None = None, port: int = 0, *, every: str = ""
) -> Iterator[Served]:
    """A service on a job of two nodes, in a thread of its own as the loop that runs a job is.

    `every`: how often it is measured for planners; never without.
    """
    stopped, ready = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with ExitStack() as stack:
                _serve(stack, folder, queries or {}, port, every, stopped, ready)
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="loop")
    thread.start()
    ready.wait()
    try:
        if failed:
            raise failed[0]
        yield _known(folder)
    finally:
        stopped.set()
        thread.join()
    if failed:
        raise failed[0]


_nodes: dict[Path, dict[str, PlayedNode]] = {}


def _known(folder: Path) -> Served:
    store = folder / "market.store"
    found = service_file.read(Store(store).service)
    assert found is not None, "the service is running"
    return Served(found.address, found.token, found.reader_token, store, _nodes[folder])


def _serve(
    stack: ExitStack,
    folder: Path,
    queries: dict[str, dict[str, str]],
    port: int,
    every: str,
    stopped: threading.Event,
    ready: threading.Event,
) -> None:
    nodes = _nodes[folder] = {"left": PlayedNode(seconds=0.5), "right": PlayedNode(rows=150, seconds=0.12)}
    job = jobs.load(job_file(folder, list(nodes), every))
    store = Store(job.store)
    journal = Journal(store.journal)  # belongs to this thread, as the engine does
    engine = stack.enter_context(Engine(store, journal, nodes, job.catalog))
    loop = _measuring(stack, job, engine) if every else None
    running = Towpath(job, stack.pop_all(), engine, Housekeeper(store, None), SelfMonitor(folder), loop)
    monitor = Monitor(engine.controller, store)
    verbs = JobVerbs(running, monitor, store)
    known = engine.controller.queries.running
    if new := {name: said for name, said in queries.items() if known.get(name) is None}:
        verbs.submit(Submit(new, str(folder)))
    requests = RequestQueue()
    with running, serving(verbs, requests, store, port=port, beside=Console(job, JobLookout(running, monitor, verbs))):
        while not stopped.wait(POLL_S):

            def watch(events: list[CarrierEvent]) -> None:
                monitor.hear(events)
                requests.serve()

            running.poll(watch)
            ready.set()


def _measuring(stack: ExitStack, job: Job, engine: Engine) -> Loop:
    assert job.control is not None, "the job file has one"
    stack.enter_context(patch.object(loops, "SAVE_EVERY_S", 1.0))
    starter = local_nodes(job.control, job.store, connect)  # which has nothing to start
    policy = policy_of(job, job.control)
    loop = loop_of(job, job.control, policy, engine, starter, (), topology_of(job))
    stack.callback(loop.close)
    return loop


def connect(name: str, _: ConnectNode) -> Runtime:
    raise AssertionError(f"{name}: nobody scales")


if __name__ == "__main__":
    where, size = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    where.mkdir(parents=True, exist_ok=True)
    port = int(sys.argv[3]) if len(sys.argv) > 3 else 8765
    with crowd(where, MIXED | some_queries(size), port, every="10 seconds") as served:
        print(f"{served.address}/#token={served.token}", flush=True)
        threading.Event().wait()
