"""What each query costs: the rows that it puts out, and estimates of its state and of its share of the time.

Nothing is counted on the way of the data: rows are those of the newest micro-batches in the results logs. State and
time are a carrier's, split over its fragments by those rows (control/observe/measures.py: how far to trust that).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from towpath.api.figures import QueryCost
from towpath.control.decide.controller import Controller
from towpath.control.observe.measures import REMEMBERED, Measures, shares
from towpath.control.observe.sampling import emitted
from towpath.control.state.records import CarrierRecord
from towpath.store.layout import Store


@dataclass(frozen=True)
class _FragmentCost:
    carrier: CarrierRecord
    rows: float
    state_rows: float
    share: float
    seconds: float
    users: int


def costs(controller: Controller, store: Store, measures: Measures) -> list[QueryCost]:
    """Of the queries that run, the one that takes most of the time first."""
    fragments = {
        number: cost
        for carrier in controller.state.carriers.values()
        if controller.runs(carrier.id)
        for number, cost in _of_carrier(controller, store, measures, carrier)
    }
    found = [
        _of_query(name, [fragments[f] for f in dict.fromkeys(p.fragment for p in parts) if f in fragments])
        for name, query in controller.queries.running.items()
        for parts in [[p for p in controller.state.parts_of(query.id) if not p.done]]
    ]
    return sorted(found, key=lambda cost: (-cost.estimated_seconds_per_trigger, cost.name))


def _of_carrier(
    controller: Controller, store: Store, measures: Measures, carrier: CarrierRecord
) -> Iterator[tuple[int, _FragmentCost]]:
    heard = measures.newest(carrier.id)
    if heard is None:
        return
    batches = emitted(store.results(carrier.id), carrier.last - REMEMBERED, carrier.last)
    known = [batch for batch in batches if batch in heard.rows]
    read = sum(heard.rows[batch] for batch in known)
    present = controller.present(carrier.id)
    rows = {f: sum(batches[batch].get(f, 0) for batch in known) for f in present}
    split = shares({f: rows[f] / read if read else 0.0 for f in present})
    for number in present:
        yield (
            number,
            _FragmentCost(
                carrier,
                rows[number] / max(1, len(known)),
                heard.state_rows * split[number],
                split[number],
                heard.seconds * split[number],
                len({part.query for part in controller.users(number)}),
            ),
        )


def _of_query(name: str, fragments: list[_FragmentCost]) -> QueryCost:
    return QueryCost(
        name=name,
        carriers=[f"{f.carrier.id} ({f.carrier.template.family.kind})" for f in fragments],
        nodes=list(dict.fromkeys(f.carrier.node for f in fragments)),
        shared_with=max([f.users for f in fragments], default=1) - 1,
        rows_per_trigger=sum(f.rows for f in fragments),
        estimated_state_rows=sum(f.state_rows for f in fragments),
        estimated_share_of_carrier=max([f.share for f in fragments], default=0.0),
        estimated_seconds_per_trigger=sum(f.seconds for f in fragments),
    )
