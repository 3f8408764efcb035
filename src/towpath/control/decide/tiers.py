"""When fragments change between universal carriers and those with plans of their own, on the node where they are.

By measured costs, in shares of a core. What a universal carrier does beyond what any carrier does in a trigger is split
over its fragments by the rows that they put out, and a carrier of their own would take what any takes. A shape changes
when the other kind is cheaper by `MARGIN` in `LOOKS` measurements in a row, and then rests. Decides; does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from towpath.control.observe.measures import CarrierMeasure, Measures
from towpath.control.state.controller_state import ControllerState
from towpath.control.state.records import CarrierRecord, FragmentRecord, FragmentStatus
from towpath.plan import CarrierKinds
from towpath.plan.templates import Template, template_of, universal_for

MARGIN = 1.5  # so many times cheaper, since both are estimates
LOOKS = 3
AT_ONCE = 200  # fragments; each is a move of its own
LEAST_WORK_S = 0.2  # of a trigger, that the smallest carrier calculates (docs/design/any_shape.md, "Which carrier")

Subject = tuple[str, int]  # a node, and a shape by its number


@dataclass(frozen=True)
class Change:
    """Fragments on one node that are to change their kind of carrier."""

    subjects: frozenset[Subject]
    fragments: tuple[int, ...]
    carriers: CarrierKinds
    reason: str


@dataclass(frozen=True)
class _Seen:
    """A carrier that runs, with what was measured of it."""

    record: CarrierRecord
    fragments: Sequence[FragmentRecord]  # that can change now
    measure: CarrierMeasure
    rows: dict[int, float]  # that each fragment of it puts out per second

    @property
    def universal(self) -> bool:
        return self.record.template.family.universal


class Tiers:
    def __init__(self, rest_s: float) -> None:
        self._rest_s = rest_s
        self._streaks: dict[tuple[frozenset[Subject], CarrierKinds], int] = {}
        self._rests_until: dict[Subject, float] = {}
        self._numbers: dict[Template, int] = {}
        self._shapes: dict[int, int] = {}  # of fragments

    def look(self, known: ControllerState, measures: Measures, now: float) -> list[Change]:
        """What is to change now, after another measurement."""
        if known.kinds is not CarrierKinds.AUTO:
            return []
        seen = list(_seen(known, measures))
        here = {fragment.id for carrier in seen for fragment in carrier.fragments}
        self._shapes = {f: shape for f, shape in self._shapes.items() if f in here}
        wished = {(w.subjects, w.carriers): w for carrier in seen for w in self._wishes(carrier, seen)}
        self._streaks = {key: self._streaks.get(key, 0) + 1 for key in wished}
        found = [w for key, w in wished.items() if self._streaks[key] >= LOOKS and self._rested(w.subjects, now)]
        self._rests_until |= {subject: now + self._rest_s for change in found for subject in change.subjects}
        return found

    def _rested(self, subjects: Iterable[Subject], now: float) -> bool:
        return all(now >= self._rests_until.get(subject, now) for subject in subjects)

    def _wishes(self, carrier: _Seen, seen: Sequence[_Seen]) -> Iterator[Change]:
        least = _least_work(carrier, [other for other in seen if other.record.node == carrier.record.node])
        if carrier.universal:
            yield from self._hot(carrier, least)
        elif (wish := self._cool(carrier, seen, least)) is not None:
            yield wish

    def _hot(self, carrier: _Seen, least: float) -> Iterator[Change]:
        """Shapes that take more in a universal carrier than a carrier of their own would."""
        shapes: dict[Subject, list[FragmentRecord]] = {}
        for fragment in carrier.fragments:
            shapes.setdefault(self._subject(carrier, fragment), []).append(fragment)
        own = carrier.measure.busy - carrier.measure.work + least
        for subject, fragments in shapes.items():
            cost = sum(carrier.rows[f.id] for f in fragments) * _per_row(carrier, least)
            if cost > MARGIN * own:
                hottest = sorted(fragments, key=lambda f: (-carrier.rows[f.id], f.id))[:AT_ONCE]
                reason = (
                    f"{_counted(fragments)} of a shape take about {cost:.2f} of a core in universal carrier "
                    f"{carrier.record.id}, a carrier of their own would take {own:.2f}"
                )
                numbers = tuple(f.id for f in hottest)
                yield Change(frozenset([subject]), numbers, CarrierKinds.COMPILED, reason)

    def _cool(self, carrier: _Seen, seen: Sequence[_Seen], least: float) -> Change | None:
        """A carrier that takes more than its fragments would in the universal one that runs beside it."""
        if not 0 < len(carrier.fragments) == len(carrier.rows) <= AT_ONCE:
            return None
        wide, *others = {universal_for(f.pipeline) for f in carrier.fragments}
        if wide is None or others:
            return None
        beside = [s for s in seen if s.record.node == carrier.record.node and s.record.template.covers(wide)]
        if not beside:
            return None
        busy, cost = carrier.measure.busy, sum(carrier.rows.values()) * _per_row(beside[0], least)
        if busy <= MARGIN * cost:
            return None
        reason = (
            f"carrier {carrier.record.id} takes {busy:.2f} of a core for {_counted(carrier.fragments)}, which would "
            f"take about {cost:.2f} in universal carrier {beside[0].record.id}"
        )
        numbers = tuple(f.id for f in carrier.fragments)
        subjects = frozenset(self._subject(carrier, f) for f in carrier.fragments)
        return Change(subjects, numbers, CarrierKinds.UNIVERSAL, reason)

    def _subject(self, carrier: _Seen, fragment: FragmentRecord) -> Subject:
        if fragment.id not in self._shapes:
            shape = template_of(fragment.pipeline)
            self._shapes[fragment.id] = self._numbers.setdefault(shape, len(self._numbers))
        return carrier.record.node, self._shapes[fragment.id]


def _seen(known: ControllerState, measures: Measures) -> Iterator[_Seen]:
    """Carriers that were measured, on nodes that take something new."""
    busy = {fragment for move in known.moves.values() for fragment in (move.source, move.target)}
    for name in known.runs:
        record, measure = known.state.carriers[name], measures.carrier(name)
        if measure is None or record.past or known.refusal(record.node) is not None:
            continue
        present = known.present.get(name, {}).values()
        able = [f for f in present if f.status is FragmentStatus.LIVE and f.id not in busy and known.users.get(f.id)]
        yield _Seen(record, able, measure, {f.id: measures.selectivity(f.id) * measure.rows for f in present})


def _least_work(carrier: _Seen, beside: Iterable[_Seen]) -> float:
    """What any carrier of this node calculates, however little it has to do."""
    return min([LEAST_WORK_S / max(carrier.measure.period_s, LEAST_WORK_S), *(c.measure.work for c in beside)])


def _per_row(carrier: _Seen, least: float) -> float:
    """What a row that a fragment puts out costs in a universal carrier."""
    rows = sum(carrier.rows.values())
    return max(0.0, carrier.measure.work - least) / rows if rows else 0.0


def _counted(fragments: Sequence[FragmentRecord]) -> str:
    return f"{len(fragments):,} fragment{'' if len(fragments) == 1 else 's'}"
