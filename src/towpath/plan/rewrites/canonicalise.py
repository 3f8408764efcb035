"""Gives equal queries equal plans.

Order of AND, OR, + and *, direction of comparisons, order of FROM and aliases do not matter. Aliases become
i0, i1, ... in an order that depends on what the inputs are and not on how the query was written.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, groupby, permutations, product
from typing import Any

from sqlglot import exp

from towpath.lang.query import WINDOW
from towpath.plan.expressions import aliases_in, canonical, form
from towpath.plan.lookups import joined_class
from towpath.plan.operators import (
    Filter,
    LogicalOperator,
    Project,
    Scan,
    WindowAggregate,
    children,
    expressions,
    scans,
    walk,
    with_children,
)
from towpath.plan.renaming import Names, with_names
from towpath.schema import Catalog

# Of inputs that look alike there are up to 120 namings. Beyond so many expressions to write down for all of them the
# first one will do: the answer is the same, only an equal query that is written in another order may not share it.
MOST_FORMS = 5_000


def canonicalise(plan: LogicalOperator, catalog: Catalog) -> LogicalOperator:
    if not isinstance(plan, Project | WindowAggregate):
        return with_children(plan, tuple(canonicalise(c, catalog) for c in children(plan)))
    return with_names(plan, _new_names(plan, catalog))


def _new_names(plan: LogicalOperator, catalog: Catalog) -> Names:
    """The least of all namings: by shape first, so that queries of one shape get one template."""
    links = [c for op in walk(plan) if isinstance(op, Filter) for c in op.conjuncts if len(aliases_in(c)) > 1]
    inputs = scans(plan)
    keys: tuple[Callable[[Names], list[Any]], ...] = (
        lambda names: sorted(_form(c, names, shape=True) for c in links),
        lambda names: sorted((names[s.alias], s.stream, s.range_us or 0) for s in inputs),
        lambda names: sorted(_form(c, names) for op in walk(plan) if isinstance(op, Filter) for c in op.conjuncts),
        lambda names: [_form(e, names) for e in expressions(plan)],
    )
    candidates = _candidates(inputs, links, catalog)
    if len(candidates) * sum(1 for op in walk(plan) for _ in expressions(op)) > MOST_FORMS:
        return candidates[0]
    for key in keys:
        if len(candidates) == 1:
            break
        ranked = [(key(names), names) for names in candidates]
        least = min(ranked, key=lambda pair: pair[0])[0]
        candidates = [names for rank, names in ranked if rank == least]
    return candidates[0]


def _candidates(inputs: tuple[Scan, ...], links: list[exp.Expression], catalog: Catalog) -> list[Names]:
    """All namings that keep to the order of what is known of each input by itself."""

    def alone(scan: Scan) -> tuple[object, ...]:
        seen = sorted(_seen_from(c, scan.alias) for c in links if scan.alias in aliases_in(c))
        return (str(joined_class(catalog[scan.stream], scan.lookups)), seen)

    keys = {scan.alias: alone(scan) for scan in inputs}
    ordered = sorted(inputs, key=lambda scan: keys[scan.alias])
    alike = [list(group) for _, group in groupby(ordered, key=lambda scan: keys[scan.alias])]
    orders = product(*(permutations(group) for group in alike))
    return [_numbered(chain.from_iterable(order)) for order in orders]


def _numbered(ordered: chain[Scan]) -> Names:
    return {scan.alias: f"i{n}" for n, scan in enumerate(ordered)} | {WINDOW: WINDOW}


def _seen_from(link: exp.Expression, alias: str) -> str:
    """The shape of a condition for one of its inputs: its own alias is `own`, all others are `other`."""
    return _form(link, {a: "own" if a == alias else "other" for a in aliases_in(link)}, shape=True)


def _form(expr: exp.Expression, names: Names, *, shape: bool = False) -> str:
    return form(canonical(expr, names), shape=shape)
