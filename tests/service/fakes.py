"""A job without Spark behind a real service: its verbs are played, everything else is as it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from towpath.api.figures import CarrierFigures, Durations, QueryCost
from towpath.errors import Mistake, MoveRefused, NodeRefused, QueryError, ServiceError
from towpath.service.messages import (
    Drain,
    HistoryEntry,
    JobStatus,
    LookRequest,
    Migrate,
    MoveStatus,
    NodeStatus,
    QueryStatus,
    Readiness,
    Submit,
    WayStatus,
    Withdraw,
)
from towpath.service.request_queue import RequestQueue
from towpath.service.server import serving
from towpath.store.layout import Store

STEPS = ("warming", "fenced", "draining", "done")
COST = QueryCost(
    name="hot",
    carriers=["c0 (filter)"],
    nodes=["left"],
    shared_with=2,
    rows_per_trigger=12.5,
    estimated_state_rows=0.0,
    estimated_share_of_carrier=0.25,
    estimated_seconds_per_trigger=0.1,
)
CARRIERS = ["c0 (universal)", "c1 (universal)"]


class FakeVerbs:
    """Two nodes, left and right. Whatever is asked about the query `bad`, the node `busy` or the fragment 13 fails."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.entries: list[HistoryEntry] = []
        self._steps = iter(STEPS)
        self._move = MoveStatus(1, 7, "hot", "left", "right", CARRIERS, "warming", None, 0, "asked for")
        self._states = iter(["draining", "draining", "drained"])
        self.state = "open"
        self.readiness = Readiness(True, "turns", "2 of 2 answer", "can be written")
        self.troubles: list[str] = []
        self.aside: dict[str, str] = {}
        self.ways: list[WayStatus] = []
        self.looks = 1000  # at the status, before the job ends

    def status(self) -> JobStatus:
        if self.looks == 0:
            raise ServiceError("the job ends")
        self.looks -= 1
        self.state = next(self._states, "drained") if self.state == "draining" else self.state
        late = {"late": 3, "late_by_stream": {"bids": 3}, "unheard": 0}
        figures: dict[str, Any] = {"queries": 1, "rows_per_s": 200.0, "trigger_s": 0.25, "event_us": 1_500_000, **late}
        carrier = CarrierFigures(id="c0", node="left", kind="filter", fragments=1, rows=1000, runs=True, **figures)
        return JobStatus(
            **figures,
            carriers=[carrier],
            results=10,
            results_per_s=5.0,
            slowest_s=0.5,
            restarts=0,
            rejected=0,
            store="/job.store",
            pid=1,
            nodes=[self._node("left"), NodeStatus("right", "embedded", "open", 0, 0, 0.0)],
            ways=self.ways,
            moves=[self._move],
            troubles=self.troubles,
            aside=self.aside,
        )

    def costs(self) -> list[QueryCost]:
        return [COST]

    def durations(self) -> Durations:
        return Durations((0, 3, 1, 0, 0, 0, 0, 0, 0, 1), 62.0)

    def ready(self) -> Readiness:
        return self.readiness

    def queries(self) -> list[QueryStatus]:
        return [QueryStatus("hot", "standing", "SELECT 1", [7], ["left"])]

    def submit(self, asked: Submit) -> list[QueryStatus]:
        self.asked.append(asked)
        if "bad" in asked.queries:
            problem = Mistake("queries.bad, line 1", "no stream clok", "did you mean clock?", "FROM clok\n     ^^^^")
            raise QueryError("1 mistake in queries:", [problem])
        return [QueryStatus(name, "starting", q["sql"], [7], ["left"]) for name, q in asked.queries.items()]

    def withdraw(self, asked: Withdraw) -> list[str]:
        self.asked.append(asked)
        return asked.names

    def migrate(self, asked: Migrate) -> list[MoveStatus]:
        self.asked.append(asked)
        if asked.to == "busy":
            raise MoveRefused("node busy is being drained")
        if asked.subject == "13":
            raise ZeroDivisionError("on purpose")
        return [self._move]

    def moves(self, numbers: list[int]) -> list[MoveStatus]:
        step = next(self._steps, "done")
        if not self.entries or self.entries[-1].kind != f"move {step}":
            self.entries.append(
                HistoryEntry(len(self.entries) + 1, 0, f"move {step}", f"it is {step}", None, 7, ["left"])
            )
        return [MoveStatus(n, 7, "hot", "left", "right", CARRIERS, step, None, 0, "asked for") for n in numbers]

    def drain(self, asked: Drain) -> NodeStatus:
        self.asked.append(asked)
        if asked.node == "busy":
            raise NodeRefused("no node other than busy takes queries")
        self.state = "open" if asked.undo else "draining"
        return self._node(asked.node)

    def history(self, asked: LookRequest) -> list[HistoryEntry]:
        found = [entry for entry in self.entries if entry.number > asked.after]
        return found if asked.limit < 0 else found[-asked.limit :]

    def _node(self, name: str) -> NodeStatus:
        return NodeStatus(name, "embedded", self.state, 1, 1, 200.0)


@contextmanager
def service(store: Path, verbs: FakeVerbs) -> Iterator[str]:
    """Serves in a store as `towpath up` does, with a loop that only serves; gives the address."""
    store.mkdir(parents=True, exist_ok=True)
    desk, stopped = RequestQueue(), threading.Event()

    def loop() -> None:
        while not stopped.wait(0.01):
            desk.serve()

    thread = threading.Thread(target=loop)
    with serving(verbs, desk, Store(store)) as address:
        thread.start()
        try:
            yield address
        finally:
            stopped.set()
            thread.join()
