"""What the controller remembers. Every record is kept in the journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from towpath.plan.assignment import Row
from towpath.plan.templates import Template


class Status(StrEnum):
    JOINING = "joining"  # in the assignment table, not yet seen by a micro-batch
    LIVE = "live"
    LEAVING = "leaving"  # out of the table, but a micro-batch may still have it
    GONE = "gone"


@dataclass
class CarrierRecord:
    id: str
    template: Template
    delay_us: int  # the longest allowed delay among its streams
    version: int = 0  # of its assignment table
    started_version: int | None = None  # the table its very first micro-batch could see
    newest_us: int | None = None  # highest event time of all finished micro-batches
    watermark_us: int | None = None
    batches: int = 0
    late: int = 0


@dataclass
class FragmentRecord:
    id: int
    signature: str
    carrier: str
    rows: tuple[Row, ...]
    lookback_us: int  # how far an aggregate over a join looks behind its window's start
    status: Status = Status.JOINING
    version: int = 0  # of the table that brought it in, or, when leaving, that no longer has it
    from_us: int | None = None


@dataclass
class PartRecord:
    """One SELECT of a query: which fragment answers it, for which event times, and where its columns are in the results log."""

    query: int
    branch: int
    fragment: int
    columns: tuple[tuple[str, str], ...]  # (output name, column of the results log)
    windowed: bool
    from_now: bool = False
    settled: bool = False  # from_us is final
    from_us: int | None = None
    until_us: int | None = None


@dataclass
class QueryRecord:
    id: int
    name: str
    sql: str
    running: bool = True
    sink: dict[str, str] | None = None
    origin: str = "api"  # "job" for those of the job file and its folder


Record = CarrierRecord | FragmentRecord | PartRecord | QueryRecord


@dataclass
class State:
    carriers: dict[str, CarrierRecord] = field(default_factory=dict)
    fragments: dict[int, FragmentRecord] = field(default_factory=dict)
    parts: dict[tuple[int, int], PartRecord] = field(default_factory=dict)
    queries: dict[int, QueryRecord] = field(default_factory=dict)

    def parts_of(self, query: int) -> list[PartRecord]:
        found = []
        while (part := self.parts.get((query, len(found)))) is not None:
            found.append(part)
        return found
