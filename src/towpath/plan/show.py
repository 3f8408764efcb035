"""Plans, templates and constants in words, for `towpath explain` and for tests that compare plans as text."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp

from towpath.lang import expression_text
from towpath.lang.query import Lookup, duration, window
from towpath.lang.show import item_text, top_text
from towpath.plan.boxes import Box, Interval
from towpath.plan.constants import Value
from towpath.plan.estimate import rate
from towpath.plan.fragments import PlanFragment
from towpath.plan.lookups import lookups_of, values_of
from towpath.plan.operators import (
    ColumnRef,
    Filter,
    LogicalOperator,
    Project,
    Scan,
    Union,
    WindowAggregate,
    WindowJoin,
    children,
    expressions,
    walk,
)
from towpath.plan.pipeline import Bound, Output, Pipeline, Ranking, Slot
from towpath.plan.templates import Template
from towpath.schema import Catalog, base_class

T = TypeVar("T")
Words = dict[str, list[str]]  # a heading and what is to be said under it


@dataclass(frozen=True)
class ShownNode:
    """An operator of a plan as it is shown."""

    operator: str
    detail: str
    rate: float  # estimated tuples per second
    fragment: int | None
    inputs: tuple[ShownNode, ...]


def nodes(plan: LogicalOperator, catalog: Catalog, fragments: Iterable[PlanFragment] = ()) -> ShownNode:
    owners = {position: fragment.number for fragment in fragments for position in fragment.positions}
    numbers = iter([owners.get(position) for position, _ in enumerate(walk(plan))])

    def node(op: LogicalOperator, above: frozenset[ColumnRef]) -> ShownNode:
        fragment = next(numbers)
        used = frozenset((c.table, c.name) for e in expressions(op) for c in e.find_all(exp.Column)) | above
        kind, detail = _describe(op)
        if isinstance(op, Scan):
            detail += f": {', '.join(_needed(op, used, catalog))}"
        return ShownNode(kind, detail, rate(op, catalog), fragment, tuple(node(child, used) for child in children(op)))

    return node(plan, frozenset())


def _needed(scan: Scan, used: frozenset[ColumnRef], catalog: Catalog) -> Iterator[str]:
    """The columns that a query needs of a stream. What a carrier reads is what all its queries need."""
    stream = scan.read(catalog)
    keys = values_of(scan.lookups)
    return (c.name for c in stream.columns if c.name in {stream.time, *keys} or (scan.alias, c.name) in used)


def tree(top: ShownNode) -> str:
    """The operators below each other, with their rates and fragments before them."""
    lines = ["tuples/s  fragment"]
    for prefix, node in _lines(top):
        fragment = "" if node.fragment is None else f"F{node.fragment}"
        lines.append(f"{_rate_text(node.rate):>8}  {fragment:<8}  {prefix}{node.operator} {node.detail}".rstrip())
    return "\n".join(lines)


def _lines(node: ShownNode, first: str = "", rest: str = "") -> Iterator[tuple[str, ShownNode]]:
    yield first, node
    for n, child in enumerate(node.inputs, start=1):
        last = n == len(node.inputs)
        yield from _lines(child, f"{rest}{'└─ ' if last else '├─ '}", f"{rest}{'   ' if last else '│  '}")


def _rate_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _describe(op: LogicalOperator) -> tuple[str, str]:
    match op:
        case Scan():
            size = f" {window(op.range_us, None)}" if op.range_us else ""
            tables = "".join(f", {lookup_text(table)}" for table in op.lookups)
            return "scan", f"{op.stream} AS {op.alias}{size}{tables}"
        case Filter():
            return "filter", _all(op.conjuncts)
        case WindowJoin():
            return "join", f"ON {_all(op.conjuncts)}" if op.conjuncts else ""
        case Project():
            return "project", _items(op)
        case WindowAggregate():
            return "aggregate", _aggregate(op)
        case Union():
            return "union all", ""


def _all(conjuncts: tuple[exp.Expression, ...]) -> str:
    texts = [(expression_text(c), isinstance(c, exp.Or) and len(conjuncts) > 1) for c in conjuncts]
    return " AND ".join(f"({text})" if weaker else text for text, weaker in texts)


def _items(op: Project | WindowAggregate) -> str:
    top = op.top if isinstance(op, WindowAggregate) else None
    return ", ".join(f"{item_text(i, top)} AS {i.name}" for i in op.items)


def _aggregate(op: WindowAggregate) -> str:
    text = f"{op.window.text} {_items(op)}"
    if op.group_by:
        text += " GROUP BY " + ", ".join(map(expression_text, op.group_by))
    if op.having:
        text += f" HAVING {_all(op.having)}"
    if op.top:
        text += f" QUALIFY {top_text(op.top)} <= {op.top.most}"
    return text


def fragment_words(fragments: Iterable[PlanFragment]) -> list[str]:
    """Where each fragment is native, and which it reads."""
    lines = []
    for fragment in fragments:
        reads = f", reads {', '.join(f'F{n}' for n in fragment.upstream)}" if fragment.upstream else ""
        lines.append(f"F{fragment.number} native to {fragment.stream}{reads}")
    return lines


# --- templates and their parameters --------------------------------------------------------------------------------


def template_words(template: Template, catalog: Catalog) -> Words:
    """What a carrier of this template can run."""
    family = template.family
    words: Words = {
        "kind": [family.kind],
        "reads": [f"i{n}: {_streams(schema, catalog)}" for n, schema in enumerate(family.classes)],
        "joined on": [f"{_column(a)} = {_column(b)}" for a, b in family.keys],
        "join window": [f"up to {duration(family.reach_us)}"] if family.reach_us else [],
        "looked up by": [" and ".join(map(_column, probe)) or "stream alone" for probe in template.probes],
        "ranges of": [_column(c) for c in template.ranges],
        "other conditions": _slots(template.residuals),
        "group by": _slots(template.groups),
        "aggregates": _slots(template.aggregates),
        "having": _slots(template.having),
        "outputs": [*map(_column, template.columns), *_slots(template.computed)],
    }
    return {heading: lines for heading, lines in words.items() if lines}


def parameter_words(pipeline: Pipeline) -> Words:
    """What is one query's own in the template it runs in."""
    words: Words = {
        "streams": [
            f"{s.alias} = {s.stream}{f' {window(s.range_us, None)}' if s.range_us else ''}" for s in pipeline.sources
        ],
        "window": [pipeline.window.text] if pipeline.window else [],
        "first rows": [_ranking(pipeline.ranking)] if pipeline.ranking else [],
        "tuples with": _boxes(pipeline.boxes),
        "constants": [
            text for bound in (*pipeline.residuals, *pipeline.having, *pipeline.computed) for text in _constants(bound)
        ],
    }
    return {heading: lines for heading, lines in words.items() if lines}


def _ranking(ranking: Ranking) -> str:
    def texts(outputs: Iterable[Output]) -> str:
        slots = (output.bound.slot if output.bound is not None else output.slot for output in outputs)
        return ", ".join(_slots(slot for slot in slots if slot is not None))

    each = f" of each {texts(ranking.partition)}" if ranking.partition else ""
    return f"{ranking.function}() <= {ranking.most}{each} by {texts(key.value for key in ranking.order)}"


def missing_words(wanted: Template, existing: Template) -> list[str]:
    """What a template of the same family lacks to cover another one."""
    lacking = [
        *(
            f"a lookup by {' and '.join(map(_column, p)) or 'stream alone'}"
            for p in _new(wanted.probes, existing.probes)
        ),
        *(f"the range of {_column(c)}" for c in _new(wanted.ranges, existing.ranges)),
        *(f"the condition {text}" for text in _slots(_new(wanted.residuals, existing.residuals))),
        *(f"the output {_column(c)}" for c in _new(wanted.columns, existing.columns)),
        *(f"the output {text}" for text in _slots(_new(wanted.computed, existing.computed))),
        *(f"the group {text}" for text in _slots(_new(wanted.groups, existing.groups))),
        *(f"the aggregate {text}" for text in _slots(_new(wanted.aggregates, existing.aggregates))),
        *(f"the HAVING condition {text}" for text in _slots(_new(wanted.having, existing.having))),
    ]
    return lacking


def _new(wanted: tuple[T, ...], existing: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(x for x in wanted if x not in existing)


def _streams(schema_class: tuple[tuple[str, str], ...], catalog: Catalog) -> str:
    names = [name for name, stream in catalog.items() if stream.schema_class == base_class(schema_class)]
    # The 96 streams of "sensor{1..96}" need not be listed.
    listed = ", ".join(names) if len(names) < 4 else f"{names[0]} … {names[-1]} ({len(names)} streams)"
    return listed + "".join(f", {lookup_text(lookup)}" for lookup in lookups_of(schema_class))


def lookup_text(lookup: Lookup) -> str:
    """`with side by auction % 10 = key`."""
    values = [(value.transform(_bare), name) for value, name in lookup.keys]
    keys = " AND ".join(f"{expression_text(value)} = {name}" for value, name in values)
    return f"with {lookup.table} by {keys}{', if there is one' if lookup.outer else ''}"


def _bare(node: exp.Expression) -> exp.Expression:
    return exp.column(node.name, quoted=True) if isinstance(node, exp.Column) else node


def _column(column: ColumnRef) -> str:
    return f"{column[0]}.{column[1]}"


def _slots(slots: Iterable[Slot]) -> list[str]:
    return [expression_text(slot.plain) for slot in slots]


def _constants(bound: Bound) -> Iterator[str]:
    if bound.values:
        values = ", ".join(f"@{n} = {value_text(value)}" for n, value in enumerate(bound.values))
        yield f"{values} in {expression_text(bound.slot.plain)}"


def _boxes(boxes: tuple[Box, ...]) -> list[str]:
    return [text for box in boxes if (text := " AND ".join(_tests(box)))]


def _tests(box: Box) -> Iterator[str]:
    for column, value in box.equals:
        yield f"{_column(column)} = {value_text(value)}"
    for column, interval in box.ranges:
        yield from (f"{_column(column)} {bound}" for bound in _bounds(interval))


def _bounds(interval: Interval) -> Iterator[str]:
    if interval.lo is not None:
        before = _predecessor(interval.lo)
        yield f">= {value_text(interval.lo)}" if before is None else f"> {value_text(before)}"
    if interval.hi is not None:
        before = _predecessor(interval.hi)
        yield f"< {value_text(interval.hi)}" if before is None else f"<= {value_text(before)}"


def _predecessor(value: Value) -> Value | None:
    """The value whose successor a bound is, where the bound itself is not fit to be read: 9.000000000000002, 'a\\0'."""
    if isinstance(value, str) and value.endswith("\0"):
        return value[:-1]
    if isinstance(value, float):
        before = math.nextafter(value, -math.inf)
        return before if len(repr(before)) < len(repr(value)) else None
    return None


def value_text(value: Value) -> str:
    match value:
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return repr(value)
