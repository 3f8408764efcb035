"""A node without Spark: the fake of `Runtime`, for tests and for benchmarks of all that is not Spark."""

from __future__ import annotations

from collections.abc import Sequence

from towpath.plan.assignment import Row, TableChange
from towpath.plan.templates import Template
from towpath.runtime.carriers import CarrierEvent


class FakeNode:
    """Keeps what it is given: the tables of its carriers, and which of them run. It is never lost, and never at rest.

    It does nothing by itself. Whoever uses it puts what is to have happened into `news`, or overrides `events`.
    """

    lost: str | None = None
    slow: str | None = None
    heap_bytes: int | None = None

    def __init__(self) -> None:
        self.tables: dict[str, dict[int, list[Row]]] = {}  # of each carrier, the rows by fragment
        self.versions: dict[str, int] = {}
        self.running: dict[str, Template] = {}
        self.banned: dict[str, set[int]] = {}
        self.news: list[CarrierEvent] = []
        self._batches: dict[str, int] = {}

    def publish(self, carrier: str, template: Template, version: int, change: TableChange) -> None:
        table = self.tables[carrier] = {} if change.since is None else self.tables[carrier]
        for fragment in change.removed:
            table.pop(fragment, None)
        for row in change.added:
            table.setdefault(int(str(row["_fragment"])), []).append(row)
        self.versions[carrier] = version

    def start(self, carrier: str, template: Template, epoch: int, banned: Sequence[int] = ()) -> None:
        self.running[carrier], self.banned[carrier] = template, set(banned)

    def try_out(
        self, carrier: str, template: Template, epoch: int, rows: Sequence[Row], banned: Sequence[int] = ()
    ) -> None:
        raise AssertionError(f"carrier {carrier} never failed here")

    def stop(self, carrier: str) -> None:
        self.running.pop(carrier, None)

    def next_batch(self, carrier: str) -> int:
        """The number of a micro-batch that a carrier does now."""
        number = self._batches[carrier] = self._batches.get(carrier, -1) + 1
        return number

    def events(self) -> list[CarrierEvent]:
        found, self.news = self.news, []
        return found

    def waiting(self, carrier: str) -> bool:
        return False

    def tick(self, carrier: str, input: int, event_us: int) -> None: ...

    def finish_input(self, *, close: bool) -> None: ...

    def settle(self, carriers: Sequence[str]) -> bool:
        return True

    def ping(self) -> None: ...

    def round_trips(self) -> list[float]:
        return []

    def forget(self) -> None:
        self.running.clear()

    def close(self) -> None:
        self.running.clear()
