"""From when on queries answer, whoever runs beside them, and the past that some of them ask for. Decides only.

- *From an event time on, or from the beginning*: to the letter. A fragment that has not seen all of that is not enough,
  so the query gets one in a carrier of its own, which reads what the sources still have from their beginning: a carrier
  of the past. All who ask until it is started share it. When it has read what was there, its fragments move by a fence
  into the carriers that everybody shares (moves.py), and it stops.
- *From now on*: above the newest event time that was known of its streams when the query came; on a carrier that was
  just started, also above all that was there to be read (`Run.backlog_us`). It is decided when that is known.

Until it is decided a query answers for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from towpath.config.settings import Start
from towpath.control.decide.links import Links
from towpath.control.state.controller_state import ControllerState
from towpath.control.state.records import CarrierRecord, FragmentRecord, FragmentStatus, PartRecord, Since
from towpath.schema import LINK

AT_ONCE = 200  # moves that are begun at once: each begins with the parsing of a query

Key = tuple[int, int, int]


class Beginnings:
    def __init__(self, known: ControllerState, links: Links) -> None:
        self._known = known
        self._links = links
        self._undecided: dict[Key, PartRecord] = {}  # they wait until it is known where `now` is
        self._awaited: dict[str, None] = {}  # the carriers that will show it
        self._lacking: dict[Key, PartRecord] = {}  # they need the past
        self.waits: Callable[[int], bool] = lambda query: False  # whether a query takes over from another (endings.py)

    def begin(self) -> None:
        """Knows again who waits for what, after a start."""
        for parts in self._known.users.values():
            for part in parts:
                if not part.settled:
                    self.decide(part)

    def asked(self, start: Start, fragment: FragmentRecord, origin: str) -> tuple[Since, int | None]:
        """What a query that comes now asks of a fragment."""
        if origin == LINK:
            return Since.SOONEST, None
        if not start.now:
            return Since.EXACTLY, start.us
        newest = self._newest(self._carriers(fragment))
        return Since.NOW, None if newest is None else newest + 1

    def decide(self, part: PartRecord) -> None:
        """Settles from when on a part answers, as soon as that can be known."""
        if self.waits(part.query):
            return
        fragment = self._known.state.fragments[part.fragment]
        live, key = fragment.status is FragmentStatus.LIVE, (part.query, part.branch, part.turn)
        match part.since:
            case Since.EXACTLY if fragment.answers_from(part.asked_us):
                self._settle(part, part.asked_us)
            case Since.EXACTLY if live or self._is_behind(self._known.carrier_of(fragment), part.asked_us):
                self._lacking[key] = part
            case Since.NOW if live and self._caught_up(fragment):
                times = [part.asked_us, fragment.from_us, *self._above_backlog(fragment)]
                self._settle(part, max((us for us in times if us is not None), default=None))
            case Since.NOW if live:
                self._undecided[key] = part
                self._awaited |= dict.fromkeys(carrier.id for carrier in self._carriers(fragment))
            case Since.SOONEST if live:
                self._settle(part, fragment.from_us)

    def _settle(self, part: PartRecord, from_us: int | None) -> None:
        part.from_us, part.settled = from_us, True
        self._known.note(part)

    def _is_behind(self, carrier: CarrierRecord, asked_us: int | None) -> bool:
        """Whether a time has been read past, so that nobody who joins now will answer for it."""
        newest = carrier.newest_us
        return newest is not None and (asked_us is None or asked_us <= newest)

    # --- now ---------------------------------------------------------------------------------------------------------

    def decide_now(self) -> None:
        """A carrier has caught up: those who waited for it know from when on they answer."""
        waiting, self._undecided, self._awaited = self._undecided, {}, {}
        for part in waiting.values():
            if not part.settled:
                self.decide(part)

    def awaited(self) -> set[str]:
        """The carriers that are waited for until they have read what was there; that they rest shows as much."""
        concerned = {*self._awaited, *(carrier.id for carrier in self._reading())}
        return {name for name in concerned if (run := self._known.runs.get(name)) and not run.caught_up}

    def _caught_up(self, fragment: FragmentRecord) -> bool:
        """A carrier that made a derived stream and does not run any more is ahead of nobody."""
        runs = [run for c in self._carriers(fragment) if (run := self._known.runs.get(c.id)) is not None]
        return fragment.carrier in self._known.runs and all(run.caught_up for run in runs)

    def _above_backlog(self, fragment: FragmentRecord) -> Iterator[int]:
        for carrier in self._carriers(fragment):
            run = self._known.runs.get(carrier.id)
            if run is not None and run.backlog_us is not None:
                yield run.backlog_us + 1

    def _carriers(self, fragment: FragmentRecord) -> list[CarrierRecord]:
        """A fragment's own carrier, and those that make the derived streams which it reads."""
        makers = self._links.makers_below(fragment)
        return [self._known.carrier_of(fragment), *(self._known.state.carriers[name] for name in makers)]

    def _newest(self, carriers: list[CarrierRecord]) -> int | None:
        """The newest event time that is known of the streams that some carriers read, whoever has read it."""
        classes = {schema_class for carrier in carriers for schema_class in carrier.template.family.read}
        times = [carrier.known_us for carrier in carriers]
        for carrier in self._known.state.carriers.values():
            read = zip(carrier.template.family.read, carrier.inputs_us, strict=False)  # nothing at first
            times += [us for schema_class, us in read if schema_class in classes]
        return max((us for us in times if us is not None), default=None)

    # --- the past ----------------------------------------------------------------------------------------------------

    def is_out_of_reach(self, part: PartRecord) -> bool:
        """Whether a query over views asks for a past that nobody has: derived streams are not made again."""
        fragment = self._known.state.fragments[part.fragment]
        over_views = bool(self._known.links_of(fragment)) and part.whole is None
        return over_views and part.since is Since.EXACTLY and not self._has_past(fragment, part.asked_us)

    def _has_past(self, fragment: FragmentRecord, asked_us: int | None) -> bool:
        """Whether a fragment has seen, or is about to see, everything from an event time on."""
        if fragment.answers_from(asked_us):
            return True
        carrier = self._known.carrier_of(fragment)
        links = self._known.links_of(fragment)
        if carrier.last >= 0 if links else self._is_behind(carrier, asked_us):
            return False
        made = [self._known.state.fragments[number] for link in links for number in self._links.made_by(link)]
        return all(self._has_past(m, None if asked_us is None else asked_us - m.span_us) for m in made)

    def lacking(self) -> list[PartRecord]:
        """The parts for which the past can be read again now. On a node that does so already, the next have to wait."""
        if not self._lacking:
            return []
        waiting, self._lacking = self._lacking, {}
        for part in waiting.values():
            if not part.settled:
                self.decide(part)  # it may have moved to where it lacks nothing
        busy = {carrier.node for carrier in self._reading()}
        nodes = {node for node in self._known.nodes if node not in busy and self._known.refusal(node) is None}
        return [part for part in self._lacking.values() if self._known.node_of(part.fragment) in nodes]

    @property
    def behind(self) -> bool:
        """Whether the past is read again, or has to be."""
        return bool(self._reading()) or any(not part.settled for part in self._lacking.values())

    def leaving(self) -> Iterator[tuple[int, str]]:
        """Fragments that have caught up and can set out for a shared carrier, on the node where they are."""
        busy = {fragment for move in self._known.moves.values() for fragment in (move.source, move.target)}
        for carrier in self._past():
            if self._known.runs[carrier.id].caught_up and self._known.refusal(carrier.node) is None:
                for fragment in list(self._known.present.get(carrier.id, {}).values())[:AT_ONCE]:
                    able = fragment.id not in busy and not self._known.has_sessions(fragment)
                    if able and self._known.users.get(fragment.id):
                        yield fragment.id, carrier.node

    def _past(self) -> list[CarrierRecord]:
        carriers = (self._known.state.carriers[name] for name in self._known.runs)
        return [carrier for carrier in carriers if carrier.past]

    def _reading(self) -> list[CarrierRecord]:
        """The carriers of the past that have not caught up yet."""
        needed = (carrier for carrier in self._past() if self._known.present.get(carrier.id))
        return [carrier for carrier in needed if not self._known.runs[carrier.id].caught_up]
