"""What the pages show of a running job, gathered by the loop that runs it: plain values that any thread may keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from towpath.api.figures import CarrierFigures
from towpath.api.monitor import Monitor
from towpath.api.running import Towpath
from towpath.control.journal.answers import share_read, state_of
from towpath.control.observe.measures import CarrierMeasure, Measures
from towpath.control.observe.situation import Situation
from towpath.control.state.records import CarrierRecord, FragmentRecord, PartRecord, QueryRecord
from towpath.errors import MoveRefused
from towpath.schema import LINK
from towpath.service.messages import JobStatus, Migrate
from towpath.service.verbs import Verbs

NO_CONTROL = "the job has no control section, so nobody knows its fragments by that name"


@dataclass(frozen=True, kw_only=True)
class NodeLook:
    name: str
    type: str
    state: str  # open | draining | drained | lost
    cores: int | None  # None: of a node that was added later
    load: float | None  # the share of its cores that was busy of late; None: nothing was measured yet
    carriers: int
    fragments: int
    rows_per_s: float


@dataclass(frozen=True, kw_only=True)
class CarrierLook:
    id: str
    node: str
    kind: str
    carriers: str  # compiled | universal
    streams: list[str]  # that it reads
    queries: int
    fragments: int
    runs: bool
    rows_per_s: float
    trigger_s: float | None
    load: float | None  # the share of the time that a micro-batch was running
    delay_s: float | None  # from a tuple's arrival to its result
    pr: float | None  # Zhou's performance ratio: the delay over the time that a micro-batch takes
    period_s: float | None  # between two micro-batches
    late: int
    event_us: int | None
    last: int  # the newest micro-batch


@dataclass(frozen=True, kw_only=True)
class StreamLook:
    name: str
    rate: float  # tuples per second, as the job file declares them
    node: str | None  # where it enters; None: every node reads it by itself
    columns: dict[str, str]  # with their types
    time: str


@dataclass(frozen=True, kw_only=True)
class QueryLook:
    name: str
    state: str
    sql: str
    nodes: list[str]
    carriers: list[str]
    kinds: list[str]  # of the carriers: compiled | universal
    fragments: list[int]
    seats: list[str]  # of each fragment, its carrier
    shared_with: int  # other queries that its fragments answer too
    from_us: int | None
    failed: str | None


@dataclass(frozen=True)
class JobLook:
    """All but the queries, of which there may be many."""

    status: JobStatus
    nodes: list[NodeLook]
    carriers: list[CarrierLook]
    streams: list[StreamLook]


@dataclass(frozen=True)
class WantedMove:
    """Of a plan; its fragment goes by the name that planners know."""

    fragment: Annotated[str, Field(max_length=100)]
    source: Annotated[str, Field(max_length=250)]  # nodes
    target: Annotated[str, Field(max_length=250)]


class Lookout(Protocol):
    """Called by the loop that runs the job."""

    def job(self) -> JobLook: ...

    def queries(self) -> list[QueryLook]: ...

    def move(self, moves: Sequence[WantedMove], reason: str) -> list[str | None]:
        """Begins them; for each that does not begin, why."""


class JobLookout:
    """The lookout on a real job."""

    def __init__(self, running: Towpath, monitor: Monitor, verbs: Verbs) -> None:
        self._running = running
        self._controller = running.engine.controller
        self._monitor = monitor
        self._verbs = verbs

    def job(self) -> JobLook:
        status = self._verbs.status()
        measures = self._measures()
        busy = {carrier.id: measures.carrier(carrier.id) for carrier in status.carriers}
        return JobLook(status, list(self._nodes(status, busy)), list(self._carriers(status, busy)), self._streams())

    def _measures(self) -> Measures:
        """Those of the control loop if the job has one, which closes their windows itself."""
        if (loop := self._running.loop) is not None:
            return loop.measures
        return self._monitor.measured(self._running.engine.at_rest)

    def _nodes(self, status: JobStatus, busy: dict[str, CarrierMeasure | None]) -> Iterator[NodeLook]:
        for node in status.nodes:
            definition = self._running.job.nodes.get(node.name)
            cores = None if definition is None else definition.cores
            here = [m for c in status.carriers if c.node == node.name and (m := busy[c.id]) is not None]
            yield NodeLook(
                name=node.name,
                type=node.type,
                state=node.state,
                cores=cores,
                load=sum(measure.busy for measure in here) / (cores or 1) if here else None,
                carriers=node.carriers,
                fragments=node.fragments,
                rows_per_s=node.rows_per_s,
            )

    def _carriers(self, status: JobStatus, busy: dict[str, CarrierMeasure | None]) -> Iterator[CarrierLook]:
        for figures in status.carriers:
            record = self._controller.state.carriers[figures.id]
            yield self._carrier(figures, record, busy[figures.id])

    def _carrier(self, figures: CarrierFigures, record: CarrierRecord, measure: CarrierMeasure | None) -> CarrierLook:
        classes = record.template.family.classes
        return CarrierLook(
            id=figures.id,
            node=figures.node,
            kind=figures.kind,
            carriers=str(record.template.family.carriers),
            streams=[s.name for s in self._running.job.catalog.values() if s.schema_class in classes],
            queries=figures.queries,
            fragments=figures.fragments,
            runs=figures.runs,
            rows_per_s=figures.rows_per_s,
            trigger_s=figures.trigger_s,
            load=None if measure is None else measure.busy,
            delay_s=None if measure is None else measure.delay_s,
            pr=None if measure is None else measure.pr,
            period_s=None if measure is None else measure.period_s,
            late=figures.late,
            event_us=figures.event_us,
            last=record.last,
        )

    def _streams(self) -> list[StreamLook]:
        loop = self._running.loop
        entries = {} if loop is None else loop.topology.entries
        return [
            StreamLook(
                name=stream.name,
                rate=stream.rate,
                node=entries.get(stream.name),
                columns={column.name: column.kind.value for column in stream.columns},
                time=stream.time,
            )
            for stream in self._running.job.catalog.values()
        ]

    # --- moves -------------------------------------------------------------------------------------------------------

    def move(self, moves: Sequence[WantedMove], reason: str) -> list[str | None]:
        if (loop := self._running.loop) is None:
            return [NO_CONTROL for _ in moves]
        situation = loop.situation
        return [self._begin(situation, move, reason) for move in moves]

    def _begin(self, situation: Situation, move: WantedMove, reason: str) -> str | None:
        if (outdated := situation.outdated(move.fragment, move.source)) is not None:
            return outdated
        try:
            self._verbs.migrate(Migrate(str(situation.fragments[move.fragment].id), move.target, reason=reason))
        except MoveRefused as error:
            return str(error)
        return None

    # --- queries -----------------------------------------------------------------------------------------------------

    def queries(self) -> list[QueryLook]:
        """Those that run and those that were set aside; not the derived streams that are made for them."""
        controller = self._controller
        past = _past(controller.state.carriers, controller.state.fragments.values())
        shown = (*controller.queries.running.values(), *controller.queries.aside.values())
        return [self._query(query, past) for query in shown if query.origin != LINK]

    def _query(self, query: QueryRecord, past: dict[int, float]) -> QueryLook:
        state, known = self._controller.state, self._controller.known
        parts = state.parts_of(query.id)
        fragments = [state.fragments[number] for number in dict.fromkeys(part.fragment for part in parts)]
        carriers = [state.carriers[fragment.carrier] for fragment in fragments]
        users = {part.query for fragment in fragments for part in known.users.get(fragment.id, [])}
        return QueryLook(
            name=query.name,
            state="set aside" if query.failed is not None else state_of(parts, past),
            sql=query.sql,
            nodes=list(dict.fromkeys(carrier.node for carrier in carriers)),
            carriers=list(dict.fromkeys(carrier.id for carrier in carriers)),
            kinds=list(dict.fromkeys(str(carrier.template.family.carriers) for carrier in carriers)),
            fragments=[fragment.id for fragment in fragments],
            seats=[carrier.id for carrier in carriers],
            shared_with=max(0, len(users) - 1),
            from_us=self._begun_us(query, parts),
            failed=query.failed,
        )

    def _begun_us(self, query: QueryRecord, parts: Iterable[PartRecord]) -> int | None:
        begun = (turns[0].from_us for part in parts if (turns := self._controller.state.turns(query.id, part.branch)))
        return max((us for us in begun if us is not None), default=None)


def _past(carriers: dict[str, CarrierRecord], fragments: Iterable[FragmentRecord]) -> dict[int, float]:
    """For fragments that catch up, how much of the past they have."""
    behind = {c.id: share_read(c, carriers.values()) for c in carriers.values() if c.past}
    return {f.id: behind[f.carrier] for f in fragments if f.carrier in behind} if behind else {}
