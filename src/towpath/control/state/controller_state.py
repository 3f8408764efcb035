"""What the controller knows, and the lists it looks things up in. What changes is noted for the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from towpath.control.state.fence import OPEN
from towpath.control.state.history import Entry, EventKind
from towpath.control.state.records import (
    BEGINNING_US,
    CarrierRecord,
    FragmentRecord,
    FragmentStatus,
    MoveRecord,
    PartRecord,
    Record,
    State,
)
from towpath.control.state.runs import Run
from towpath.lang.query import SESSIONS
from towpath.plan import CarrierKinds
from towpath.plan.assignment import (
    Row,
    TableChange,
    group_columns,
    has_outputs,
    renamed_columns,
    rows,
    with_plain_columns,
)
from towpath.plan.pipeline import Pipeline
from towpath.plan.serial import dump_pipeline
from towpath.plan.templates import Family, Template, merge_all
from towpath.schema import Catalog, SchemaClass, base_class, is_link


@dataclass(frozen=True)
class StartCarrier:
    carrier: str


@dataclass(frozen=True)
class StopCarrier:
    carrier: str


@dataclass(frozen=True)
class PublishTable:
    carrier: str


Instruction = StartCarrier | StopCarrier | PublishTable


@dataclass
class _Unpublished:
    """How a carrier's table differs from the version that was published last."""

    version: int
    came: dict[int, FragmentRecord] = field(default_factory=dict)
    left: dict[int, None] = field(default_factory=dict)


class ControllerState:
    def __init__(
        self, state: State, catalog: Catalog, nodes: Sequence[str], carriers: CarrierKinds = CarrierKinds.COMPILED
    ) -> None:
        self.state = state
        self.kinds = carriers
        self.nodes = tuple(nodes)
        self.lost: set[str] = set()  # those of them that do not answer
        self.changed: dict[int, Record] = {}  # by identity, for the journal
        self.runs: dict[str, Run] = {}
        self.banned: dict[str, dict[int, FragmentRecord]] = {}  # by carrier
        self.broken: set[str] = set()  # carriers whose plan cannot run
        self._catalog = catalog
        self._carrier_numbers = count(state.last_number("carriers"))
        self._fragment_ids = count(state.last_number("fragments") + 1)
        # Fragments by number: those in a carrier's table, those of a signature that may be shared, those that a batch
        # will decide about.
        self.present: dict[str, dict[int, FragmentRecord]] = {}
        self.waiting: dict[str, dict[int, FragmentRecord]] = {}
        self._by_signature: dict[str, dict[int, FragmentRecord]] = {}
        self.users: dict[int, list[PartRecord]] = {}  # of each fragment, those whose turn it is
        self.answered: Counter[int] = Counter()  # of each fragment, the turns that it had or has
        self.ended: dict[int, None] = {}  # queries, and fragments, that are not forgotten yet
        self.gone: set[int] = set()
        self.moves: dict[int, MoveRecord] = {m.id: m for m in state.moves.values() if m.step in OPEN}
        self._unpublished: dict[str, _Unpublished] = {}  # of the other carriers nothing is known to be published
        for fragment in state.fragments.values():
            self._index(fragment)
        for move in self.moves.values():
            self.unshare(state.fragments[move.source])
        for part in state.parts.values():
            self.answered[part.fragment] += 1
            if not part.done:
                self.users.setdefault(part.fragment, []).append(part)

    def add_part(self, part: PartRecord) -> None:
        self.state.parts[part.query, part.branch, part.turn] = part
        self.answered[part.fragment] += 1
        self.users.setdefault(part.fragment, []).append(part)

    def change_seat(self, part: PartRecord, fragment: int, columns: Iterable[str], keys: Iterable[str]) -> None:
        """Another fragment answers a part that has answered nothing yet, in those columns of its results log."""
        if part in self.users.get(part.fragment, []):
            self.users[part.fragment].remove(part)
        self.remove_part(part)
        part.fragment, part.pending_fence_us, part.keys = fragment, None, tuple(keys)
        part.columns = tuple((out, name) for (out, _), name in zip(part.columns, columns, strict=True))
        self.add_part(part)
        self.note(part)

    def remove_part(self, part: PartRecord) -> None:
        del self.state.parts[part.query, part.branch, part.turn]
        self.answered[part.fragment] -= 1
        if not self.answered[part.fragment]:
            del self.answered[part.fragment]

    def note(self, record: Record) -> None:
        self.changed[id(record)] = record

    def add_history(
        self,
        kind: EventKind,
        text: str,
        *,
        query: str | None = None,
        fragment: int | None = None,
        nodes: Iterable[str] = (),
    ) -> None:
        """Adds an entry to the history, saved together with the records noted in this step."""
        self.note(Entry(kind, text, query, fragment, tuple(nodes)))

    def carrier_of(self, fragment: FragmentRecord) -> CarrierRecord:
        return self.state.carriers[fragment.carrier]

    def node_of(self, fragment: int) -> str:
        return self.carrier_of(self.state.fragments[fragment]).node

    def draining(self, node: str) -> bool:
        record = self.state.nodes.get(node)
        return record is not None and record.draining

    def refusal(self, node: str) -> str | None:
        """Why a node takes nothing new; None if it does."""
        if node not in self.nodes:
            return f"there is no node {node!r}; the job has {', '.join(self.nodes)}"
        if node in self.lost:
            return f"node {node} does not answer; see whether it runs (`towpath node list`, `towpath status`)"
        if self.draining(node):
            return f"node {node} is being drained and takes nothing new; `towpath drain {node} --undo` ends that"
        return None

    @property
    def open_nodes(self) -> list[str]:
        """Those that take queries now."""
        return [name for name in self.nodes if self.refusal(name) is None]

    def used_by(self, fragment: FragmentRecord) -> str:
        """The queries that a fragment answers, in a few words."""
        names = sorted({self.state.queries[part.query].name for part in self.users.get(fragment.id, [])})
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        return f"{names[0]}{more}" if names else "no query"

    def links_of(self, fragment: FragmentRecord) -> dict[str, SchemaClass]:
        """The derived streams that a fragment reads, with their classes."""
        if not any(map(is_link, self.carrier_of(fragment).template.family.classes)):
            return {}
        return {s.stream: s.schema_class for s in fragment.pipeline.sources if is_link(s.schema_class)}

    def rows(self, carrier: str) -> list[Row]:
        """The assignment table of a carrier."""
        return [row for fragment in self.present.get(carrier, {}).values() for row in self.rows_of(fragment)]

    def rows_of(self, fragment: FragmentRecord) -> list[Row]:
        """A fragment in its carrier's assignment table."""
        return rows(fragment.id, fragment.pipeline, self.carrier_of(fragment).template)

    # --- carriers ----------------------------------------------------------------------------------------------------

    def covering(self, template: Template, node: str | None) -> CarrierRecord | None:
        """A carrier that can take a shape in, on one node or on any."""
        here = (c for c in self.state.carriers.values() if not c.past and c.id not in self.broken)
        here = (c for c in here if self._suits(c, node))
        return next((c for c in here if c.template.covers(template)), None)

    def _suits(self, carrier: CarrierRecord, node: str | None) -> bool:
        if node is not None:
            return carrier.node == node
        # When no node takes anything, the first that answers again takes over what the others had to do.
        return self.refusal(carrier.node) is None or not self.open_nodes

    def new_carriers(self, templates: Iterable[Template], node: str) -> list[CarrierRecord]:
        """Carriers for shapes nobody covers yet; each also covers what its family had, so that they stay few."""
        made = []
        for template in merge_all(templates):
            wide = template
            for existing in self.state.carriers.values():
                if existing.id in self.broken:
                    continue
                if existing.template.family == template.family and (wider := wide.merge(existing.template)).fits:
                    wide = wider
            made.append(self.new_carrier(wide, node))
        return made

    def new_past_carriers(self, templates: Iterable[Template], node: str) -> list[CarrierRecord]:
        """Carriers that read the past again, as few as possible."""
        return [self.new_carrier(template, node, past=True) for template in merge_all(templates)]

    def new_carrier(self, template: Template, node: str, *, past: bool = False) -> CarrierRecord:
        number, delay_us = next(self._carrier_numbers), self._delay(template.family)
        carrier = CarrierRecord(f"c{number}", node, template, delay_us, past=past)
        self.state.carriers[carrier.id] = carrier
        self.note(carrier)
        return carrier

    def _delay(self, family: Family) -> int:
        return max(map(self.delay_of, family.classes))

    def delay_of(self, schema_class: SchemaClass) -> int:
        """The longest allowed delay among the streams of a class; links have none."""
        base = base_class(schema_class)
        return max((s.delay_us for s in self._catalog.values() if s.schema_class == base), default=0)

    def publish(self, carriers: Iterable[str]) -> list[Instruction]:
        instructions: list[Instruction] = []
        for name in carriers:
            carrier = self.state.carriers[name]
            carrier.version += 1
            self.note(carrier)
            instructions.append(PublishTable(name))
        return instructions

    def start(self, carriers: Iterable[str]) -> list[Instruction]:
        """Those that do not run, among them carriers that had no queries left when the job was last stopped."""
        stopped = [self.state.carriers[name] for name in carriers if name not in self.runs]
        for carrier in stopped:
            # The streams of a job may have changed since; what was read before came with the delay of then.
            carrier.delay_us = max(carrier.delay_us, self._delay(carrier.template.family))
            self.begin_run(carrier)
            before = "again, from its checkpoint" if carrier.last >= 0 else "for the first time"
            text = f"carrier {carrier.id} ({carrier.template.family.kind}) starts on {carrier.node} {before}"
            self.add_history(EventKind.CARRIER_STARTED, text, nodes=[carrier.node])
        # On a node that does not answer it is started when that node, or another, does (failover.py).
        return [StartCarrier(c.id) for c in stopped if c.node not in self.lost]

    @contextmanager
    def publishing(self, carrier: str) -> Iterator[TableChange]:
        """What a publication has to bring; after one that fails it is the whole table."""
        before = self._unpublished.pop(carrier, None)
        if before is None:
            yield TableChange(self.rows(carrier))
        else:
            came = [row for fragment in before.came.values() for row in self.rows_of(fragment)]
            yield TableChange(came, list(before.left), before.version)
        self._unpublished[carrier] = _Unpublished(self.state.carriers[carrier].version)

    def publish_whole(self, carrier: str) -> None:
        """Nobody knows what was published last."""
        self._unpublished.pop(carrier, None)

    def begin_run(self, carrier: CarrierRecord) -> None:
        """It is started: of its micro-batches before nothing is certain."""
        self.publish_whole(carrier.id)
        self.runs[carrier.id] = Run()
        self.note(carrier)

    # --- fragments ---------------------------------------------------------------------------------------------------

    def reusable(
        self, pipeline: Pipeline, node: str | None, carriers: CarrierKinds | None = None
    ) -> FragmentRecord | None:
        """A fragment with an equal signature, in a carrier (of that kind) that also has the columns asked for."""
        shared = ((f, self.carrier_of(f)) for f in self._equal(pipeline, node))
        alike = (f for f, c in shared if not c.past and carriers in (None, c.template.family.carriers))
        return next(alike, None)

    def answering(self, pipeline: Pipeline, node: str | None, asked_us: int | None) -> FragmentRecord | None:
        """One that answers from an event time on already (None: from the beginning), and be it about to catch up."""
        return next((f for f in self._equal(pipeline, node) if f.answers_from(asked_us)), None)

    def _equal(self, pipeline: Pipeline, node: str | None) -> Iterator[FragmentRecord]:
        for fragment in self._by_signature.get(pipeline.signature, {}).values():
            carrier = self.carrier_of(fragment)
            if has_outputs(fragment.pipeline, carrier.template, pipeline) and self._suits(carrier, node):
                yield fragment

    def new_fragment(self, pipeline: Pipeline, carrier: CarrierRecord) -> FragmentRecord:
        number = next(self._fragment_ids)
        reach = max(s.range_us for s in pipeline.sources) if len(pipeline.sources) > 1 else 0
        fragment = FragmentRecord(
            number,
            pipeline.signature,
            carrier.id,
            dump_pipeline(pipeline),
            reach if pipeline.window is not None else 0,
            reach + (pipeline.window.range_us if pipeline.window is not None else 0),
            FragmentStatus.JOINING
            if carrier.version or any(map(is_link, carrier.template.family.classes))
            else FragmentStatus.LIVE,
            carrier.version + 1,
        )
        self.state.fragments[number] = fragment
        self._index(fragment)
        if (table := self._unpublished.get(carrier.id)) is not None:
            table.came[number] = fragment
        self.note(fragment)
        return fragment

    def used(self, fragment: FragmentRecord) -> Pipeline:
        """What a fragment computes, with the plain columns that its users read: they are not part of what is shared."""
        return self.read_by(self.users.get(fragment.id, []), fragment)

    def read_by(self, parts: Iterable[PartRecord], fragment: FragmentRecord) -> Pipeline:
        """What a fragment computes, with the plain columns that some of its users read."""
        read = dict.fromkeys(column for part in parts for _, column in part.columns)
        return with_plain_columns(fragment.pipeline, self.carrier_of(fragment).template, read)

    def transplant(self, fragment: FragmentRecord, carrier: CarrierRecord) -> None:
        """Into a carrier that is new, from one that has never done anything."""
        before, pipeline = self.carrier_of(fragment).template, fragment.pipeline
        del self.present[fragment.carrier][fragment.id]
        self.waiting.get(fragment.carrier, {}).pop(fragment.id, None)
        self.publish_whole(fragment.carrier)
        fragment.carrier, fragment.version = carrier.id, carrier.version + 1
        self._index(fragment)
        self.note(fragment)
        renamed = renamed_columns(pipeline, before, carrier.template)
        for part in self.users.get(fragment.id, []):
            part.columns = tuple((out, renamed.get(column, column)) for out, column in part.columns)
            part.keys = tuple(group_columns(pipeline, carrier.template))
            self.note(part)

    def has_sessions(self, fragment: FragmentRecord) -> bool:
        """Whether a fragment has windows of which nobody knows how long they last."""
        return self.carrier_of(fragment).template.family.window == SESSIONS

    def leave(self, fragment: FragmentRecord, until_us: int | None, *, owed: bool) -> None:
        """Out of the table. Windows that are still open are owed, so the carrier is needed until they are closed."""
        self._take_out(fragment, FragmentStatus.LEAVING if owed else FragmentStatus.GONE, until_us)

    def ban(self, fragment: FragmentRecord) -> None:
        """Out of the table. Until all windows that it may have open are over, its carrier has to pass over them."""
        newest_us = self.carrier_of(fragment).newest_us
        over_us = BEGINNING_US if newest_us is None else newest_us + fragment.span_us
        self._take_out(fragment, FragmentStatus.BANNED, over_us)

    def _take_out(self, fragment: FragmentRecord, status: FragmentStatus, until_us: int | None) -> None:
        self.present.get(fragment.carrier, {}).pop(fragment.id, None)
        if (table := self._unpublished.get(fragment.carrier)) is not None and not table.came.pop(fragment.id, None):
            table.left[fragment.id] = None
        self.unshare(fragment)
        self.waiting.get(fragment.carrier, {}).pop(fragment.id, None)
        fragment.status, fragment.until_us = status, until_us
        self._index(fragment)
        self.note(fragment)

    def share(self, fragment: FragmentRecord) -> None:
        self._by_signature.setdefault(fragment.signature, {})[fragment.id] = fragment

    def unshare(self, fragment: FragmentRecord) -> None:
        """From now on no other query may come to use it."""
        self._by_signature.get(fragment.signature, {}).pop(fragment.id, None)

    def _index(self, fragment: FragmentRecord) -> None:
        if fragment.status in (FragmentStatus.JOINING, FragmentStatus.LIVE):
            self.present.setdefault(fragment.carrier, {})[fragment.id] = fragment
            self.share(fragment)
        if fragment.status is FragmentStatus.GONE:
            self.gone.add(fragment.id)
        if fragment.status is FragmentStatus.BANNED:
            self.banned.setdefault(fragment.carrier, {})[fragment.id] = fragment
        if fragment.status in (FragmentStatus.JOINING, FragmentStatus.LEAVING):
            self.waiting.setdefault(fragment.carrier, {})[fragment.id] = fragment
