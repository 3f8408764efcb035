"""What the controller remembers. Every record is kept in the journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from towpath.control.state.fence import MoveStep
from towpath.control.state.history import Entry
from towpath.plan import WHOLE
from towpath.plan.pipeline import Pipeline
from towpath.plan.serial import PipelineText, load_pipeline
from towpath.plan.templates import Template
from towpath.schema import in_time_from

BEGINNING_US = -62_135_596_800_000_000  # 0001-01-01, before which there is no timestamp


class FragmentStatus(StrEnum):
    JOINING = "joining"  # in the assignment table, not yet seen by a micro-batch
    LIVE = "live"
    LEAVING = "leaving"  # out of the table, with windows that are not closed yet
    GONE = "gone"
    BANNED = "banned"  # out of the table, since its carrier fails with it; its windows that are open owe nothing

    @property
    def is_over(self) -> bool:
        """Whether nothing is expected any more."""
        return self in (FragmentStatus.GONE, FragmentStatus.BANNED)


class Since(StrEnum):
    """How the `asked_us` of a part is meant."""

    EXACTLY = "exactly"  # it answers from then on, and if the past has to be read again for it
    NOW = "now"  # from then on, and not for what was there when it came
    SOONEST = "soonest"  # from when it can


@dataclass
class CarrierRecord:
    id: str
    node: str
    template: Template
    delay_us: int  # the longest allowed delay among its streams
    version: int = 0  # of its assignment table
    inputs_us: tuple[int | None, ...] = ()  # for each input, the highest event time of the batches up to the last one
    watermark_us: int | None = None  # of the last batch: it and those after it leave out what is older
    late: tuple[dict[str, int], ...] = ()  # for each input, by stream, the rows that came too late
    epoch: int = 0  # how often another node has taken it over
    last: int = -1  # batch that was heard of
    highest_us: int | None = None  # no tuple of any batch so far is newer; says nothing while in doubt
    doubtful: tuple[int, ...] = ()  # inputs of which nobody knows how far they had come (runs.py)
    ends: tuple[str | None, ...] = ()  # for each input, the position at which the last batch ended
    unheard: int = 0  # batches whose reports were missed, and with them their late rows
    past: bool = False  # it reads the past again for those who asked for it, and takes in nobody else
    first_us: int | None = None  # how far its first micro-batches came
    known_us: int | None = None  # the newest event time that its inputs had, also of what a feed holds back

    @property
    def newest_us(self) -> int | None:
        return max((t for t in self.inputs_us if t is not None), default=None)

    @property
    def complete_us(self) -> int | None:
        """No input will bring a tuple that is older, unless it is late."""
        known = [t for t in self.inputs_us if t is not None]
        reached = in_time_from(min(known), self.delay_us) if known and len(known) == len(self.inputs_us) else None
        return max((us for us in (reached, self.watermark_us) if us is not None), default=None)

    @property
    def sure(self) -> bool:
        return not self.doubtful

    @property
    def late_rows(self) -> dict[str, int]:
        """By stream; a row that several inputs read counts once."""
        names = dict.fromkeys(name for counts in self.late for name in counts)
        return {name: max(counts.get(name, 0) for counts in self.late) for name in names}


@dataclass
class FragmentRecord:
    id: int
    signature: str
    carrier: str
    text: PipelineText  # what it computes; all plain columns that it puts out are up to its users
    lookback_us: int  # how far an aggregate over a join looks behind its window's start
    span_us: int  # how long after the earliest tuple of a result its last one may come
    status: FragmentStatus = FragmentStatus.JOINING
    version: int = 0  # of the table that brought it in
    from_us: int | None = None
    until_us: int | None = None

    @property
    def pipeline(self) -> Pipeline:
        """Read from the text each time: a hundred thousand of them would fill the memory."""
        return load_pipeline(*self.text)

    def answers_from(self, asked_us: int | None) -> bool:
        """Whether it is known to have seen everything from an event time on; None is the beginning."""
        if self.status is not FragmentStatus.LIVE:
            return False
        return self.from_us is None or (asked_us is not None and self.from_us <= asked_us)


@dataclass
class PartRecord:
    """Who answers a SELECT of a query: which fragment, for which event times, in which columns of the results log.

    A query that asks for several copies has a part for each, which answer side by side.

    Fragments that move answer in turns: results whose earliest tuple is older than `handed_over_us` are those of this
    turn, the others those of the next.
    """

    query: int
    branch: int
    turn: int
    fragment: int
    columns: tuple[tuple[str, str], ...]  # (output name, column of the results log)
    windowed: bool
    settled: bool = False  # from_us is final
    from_us: int | None = None
    until_us: int | None = None
    handed_over_us: int | None = None
    pending_fence_us: int | None = None  # a fence that is not decided: what lies behind it is not handed out yet
    keys: tuple[str, ...] = ()  # of an aggregate, the columns of the results log that distinguish a window's rows
    select: int = 0  # which SELECT of the query
    ceded_us: int | None = None  # results whose earliest tuple is not older are those of the query's next version
    deciding: int | None = None  # its end may rise until a micro-batch reports this version of the carrier's table
    done: bool = False  # it needs its fragment no more
    since: Since = Since.EXACTLY
    asked_us: int | None = None  # the event time from which on the query was to answer; None: from the beginning
    whole: PipelineText | None = None  # of a query that is cut, the SELECT in one piece: derived streams have no past

    @property
    def end_us(self) -> int | None:
        """Where it ends, whether it was withdrawn or replaced."""
        return self.ceded_us if self.until_us is None else self.until_us


@dataclass
class MoveRecord:
    """A fragment on its way to another node."""

    id: int
    source: int  # fragments
    target: int
    columns: tuple[tuple[str, str], ...]  # of the source's results log, and what they are called in the target's
    reason: str
    step: MoveStep = MoveStep.WARMING
    fence_us: int | None = None
    version: int | None = None  # of the source's table: the batch that reports it decides
    fences: int = 0  # tried so far
    keys: tuple[str, ...] = ()  # of the target's results log: what distinguishes a window's rows


@dataclass
class QueryRecord:
    id: int
    name: str
    sql: str
    running: bool = True
    sink: dict[str, str] | None = None
    origin: str = "api"  # "job" for those of the job file and its folder, "link" for those that make derived streams
    fragments: str = WHOLE  # how it is cut
    failed: str | None = None  # why it was set aside
    ended_us: int | None = None  # by the wall clock, when the journal heard that it was withdrawn
    fed: bool = False  # its sink has all that it will ever get
    replaces: int | None = None  # the version that it takes over from
    series: int = 0  # the first version with the same columns: the results of those that follow it are one series
    types: tuple[str, ...] = ()  # of its columns


@dataclass
class NodeRecord:
    """What is to be remembered of a node of the job."""

    name: str
    draining: bool = False  # it takes nothing new


@dataclass
class StreamRecord:
    """What is to be remembered of a stream of the job."""

    name: str
    late: int = 0  # rows that came too late, as the carrier found that found the most


Record = StreamRecord | CarrierRecord | FragmentRecord | PartRecord | QueryRecord | MoveRecord | NodeRecord | Entry


@dataclass
class State:
    carriers: dict[str, CarrierRecord] = field(default_factory=dict)
    fragments: dict[int, FragmentRecord] = field(default_factory=dict)
    parts: dict[tuple[int, int, int], PartRecord] = field(default_factory=dict)  # by query, branch, turn
    queries: dict[int, QueryRecord] = field(default_factory=dict)
    moves: dict[int, MoveRecord] = field(default_factory=dict)
    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    streams: dict[str, StreamRecord] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict, compare=False)  # number ever given, by kind

    def last_number(self, kind: str) -> int:
        """The highest that a fragment, query or move has or had, since none is given twice; of carriers, the next."""
        known = (int(name[1:]) + 1 for name in self.carriers) if kind == "carriers" else getattr(self, kind)
        return max(self.last.get(kind, 0), max(known, default=0))

    def parts_of(self, query: int) -> list[PartRecord]:
        """Whose turn it is, for each SELECT of a query."""
        found: list[PartRecord] = []
        while turns := self.turns(query, len(found)):
            found.append(turns[-1])
        return found

    def all_turns(self, query: int) -> list[PartRecord]:
        """Everything that ever answered a query."""
        return [turn for part in self.parts_of(query) for turn in self.turns(query, part.branch)]

    def turns(self, query: int, branch: int) -> list[PartRecord]:
        found: list[PartRecord] = []
        while (part := self.parts.get((query, branch, len(found)))) is not None:
            found.append(part)
        return found
