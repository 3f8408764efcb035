"""What submitting queries would do, found out by letting the controller decide on a copy of its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from towpath.control.controller import Controller, Submission
from towpath.control.records import FragmentRecord, State, Status
from towpath.plan.show import missing_words
from towpath.plan.templates import Template, template_of
from towpath.schema import Catalog


@dataclass(frozen=True)
class Share:
    """How one SELECT of a query would run."""

    fragment: int
    carrier: str
    fragment_runs: bool  # already, before anything is submitted
    carrier_runs: bool
    equal: tuple[str, ...]  # the other queries that the fragment answers
    neighbours: int  # the other fragments in its carrier
    lacking: dict[str, list[str]]  # for a new carrier: what the running ones of the family lack


def preview(state: State, catalog: Catalog, submissions: Sequence[Submission]) -> dict[str, list[Share]]:
    """Every SELECT of the submitted queries, by the query's name. Those that run unchanged stay as they are.

    The state is changed as it would be: give it a copy, such as one loaded from the journal.
    """
    before = State(dict(state.carriers), {f.id: f for f in state.fragments.values() if _present(f)})
    controller = Controller(state, catalog)
    changed = [s for s in submissions if not _unchanged(controller, s)]
    for submission in changed:
        controller.withdraw(submission.name)
    controller.submit(changed)
    viewer = _Viewer(before, state)
    return {s.name: viewer.shares(s) for s in submissions}


def _unchanged(controller: Controller, submission: Submission) -> bool:
    running = controller.running(submission.name)
    return running is not None and running.sql == submission.sql


def _present(fragment: FragmentRecord) -> bool:
    return fragment.status in (Status.JOINING, Status.LIVE)


class _Viewer:
    def __init__(self, before: State, after: State) -> None:
        self._before = before
        self._after = after
        self._ids = {query.name: query.id for query in after.queries.values() if query.running}
        self._users: dict[int, dict[str, None]] = {}
        for name, number in self._ids.items():
            for part in after.parts_of(number):
                self._users.setdefault(part.fragment, {})[name] = None
        self._sizes: dict[str, int] = {}
        for fragment in filter(_present, after.fragments.values()):
            self._sizes[fragment.carrier] = self._sizes.get(fragment.carrier, 0) + 1

    def shares(self, submission: Submission) -> list[Share]:
        parts = self._after.parts_of(self._ids[submission.name])
        fragments = [self._after.fragments[part.fragment] for part in parts]
        return [
            Share(
                fragment.id,
                fragment.carrier,
                fragment.id in self._before.fragments,
                fragment.carrier in self._before.carriers,
                tuple(name for name in self._users[fragment.id] if name != submission.name),
                self._sizes[fragment.carrier] - 1,
                self._lacking(fragment, template_of(pipeline)),
            )
            for fragment, pipeline in zip(fragments, submission.pipelines, strict=True)
        ]

    def _lacking(self, fragment: FragmentRecord, wanted: Template) -> dict[str, list[str]]:
        if fragment.carrier in self._before.carriers:
            return {}
        return {
            carrier.id: missing_words(wanted, carrier.template)
            for carrier in self._before.carriers.values()
            if carrier.template.family == wanted.family
        }
