"""Fragments of universal carriers: pipelines compiled to Polars expressions, each distinct expression under a name.

The name of an expression is what it says, so fragments that have one in common share it: a batch calculates it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import polars as pl
from sqlglot import exp

from towpath.lang import infer
from towpath.lang.literals import cast
from towpath.lang.query import WINDOW
from towpath.plan.assignment import input_column
from towpath.plan.boxes import Box, Interval
from towpath.plan.expressions import form
from towpath.plan.join_class import JoinClass, Key, join_class
from towpath.plan.operators import ColumnRef
from towpath.plan.pipeline import Bound, Pipeline, Slot
from towpath.plan.slots import GROUPS, OUTPUTS, Layout, Partial
from towpath.schema import Type
from towpath.vector.expressions import DTYPES, Compiler, literal, unsigned_zero


@dataclass(frozen=True, eq=False)
class NamedExpression:
    """An expression over the columns of a batch."""

    name: str
    expr: pl.Expr

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedExpression) and self.name == other.name


Mask = tuple[NamedExpression, ...]  # conditions that all hold


@dataclass(frozen=True)
class VectorFragment:
    """What a batch needs to know of a fragment; `post` is what is needed of it when its windows close."""

    number: int
    pipeline: Pipeline
    post: str = ""

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.pipeline)

    @cached_property
    def compile_(self) -> SlotCompiler:
        return SlotCompiler(self.layout.types)

    @cached_property
    def stream(self) -> str:
        return self.pipeline.sources[0].stream

    @cached_property
    def join_class(self) -> JoinClass:
        return join_class(self.pipeline)

    @cached_property
    def masks(self) -> tuple[Mask, ...]:
        """A tuple belongs to the fragment if it fulfils one of these; the boxes of a fragment have none in common.

        The same for a pair of tuples, which has been looked up by a hash: the values themselves decide.
        """
        rest = (*map(self._tie, self.pipeline.keys), *map(self._condition, self.pipeline.residuals))
        return tuple((*_box(box), *rest) for box in self.pipeline.boxes)

    def side_masks(self, side: int) -> tuple[Mask, ...]:
        """What the fragment asks of the tuples of one input of its join, whatever they are paired with."""
        alias = self.pipeline.sources[side].alias
        own = [b for b in self.pipeline.residuals if all(c.table == alias for c in b.slot.columns)]
        rest = tuple(map(self._condition, own))
        return tuple(dict.fromkeys((*_box(box, alias), *rest) for box in self.pipeline.boxes))

    def _condition(self, bound: Bound) -> NamedExpression:
        expr = bound.expr
        return NamedExpression(form(expr), self.compile_(expr))

    def _tie(self, key: Key) -> NamedExpression:
        left, right = (exp.column(name, table=alias, quoted=True) for alias, name in key)
        expr = exp.EQ(this=left, expression=right)
        return NamedExpression(form(expr), self.compile_(expr))

    @cached_property
    def outputs(self) -> dict[str, NamedExpression]:
        """What a filter puts out, by the log's column."""
        return {slot: self._output(item, slot) for item, slot in self.layout.outputs.items()}

    def _output(self, item: object, slot: str) -> NamedExpression:
        if isinstance(item, Bound):
            return self._value(item.expr, OUTPUTS[slot])
        assert isinstance(item, tuple), "a filter puts out columns and what is computed of them"
        return NamedExpression(
            f"{_text(item)} {OUTPUTS[slot].value}", shown(pl.col(input_column(*item)), OUTPUTS[slot])
        )

    def _value(self, expr: exp.Expression, type_: Type) -> NamedExpression:
        return NamedExpression(f"{form(expr)} {type_.value}", shown(self.compile_(expr), type_))

    @cached_property
    def groups(self) -> dict[str, NamedExpression]:
        """The values of the groups, by column of the aggregate's key."""
        return {slot: self._carried(group.expr, GROUPS[slot]) for group, slot in self.layout.groups.items()}

    @cached_property
    def partials(self) -> dict[str, tuple[Partial, NamedExpression | None]]:
        """What is merged, by column."""
        return {
            slot: (p, None if p.argument is None else self._carried(p.argument, p.type))
            for p, slot in self.layout.partials.items()
        }

    def _carried(self, expr: exp.Expression, type_: Type) -> NamedExpression:
        return NamedExpression(
            f"{form(expr)} as {type_.value}", carried(self.compile_(expr), self.compile_.type_of(expr))
        )

    def all_named(self) -> Iterator[NamedExpression]:
        """Everything that a batch calculates for the fragment."""
        yield from (named for mask in self.masks for named in mask)
        if self.pipeline.window is None:
            yield from self.outputs.values()
            return
        yield from self.groups.values()
        yield from (named for _, named in self.partials.values() if named is not None)


class SlotCompiler:
    """Compiles the expressions of one pipeline.

    `known` are subexpressions that were calculated before, `parameters` constants that are columns, with their types.
    """

    def __init__(
        self,
        types: Mapping[ColumnRef, Type],
        known: Mapping[exp.Expression, pl.Expr] | None = None,
        parameters: Mapping[exp.Expression, tuple[pl.Expr, Type]] | None = None,
    ) -> None:
        self._types = types
        self._known = known or {}
        self._parameters = parameters or {}

    def __call__(self, expr: exp.Expression) -> pl.Expr:
        return Compiler(self._resolve, self.type_of)(expr)

    def _resolve(self, node: exp.Expression) -> pl.Expr | None:
        if isinstance(node, exp.Column):
            if node.table == WINDOW:
                return pl.col("_born" if node.name == "window_start" else "_time")
            return pl.col(input_column(node.table, node.name))
        if isinstance(node, exp.Parameter):
            return self._parameters[node][0]
        return self._known[node] if self._known and node in self._known else None

    def type_of(self, node: exp.Expression) -> Type:
        plain = Slot(node, Type.INT).plain if self._known else node
        if self._parameters:
            plain = plain.transform(self._stand_in)
        return infer(plain, lambda alias, column: Type.TIMESTAMP if alias == WINDOW else self._types[alias, column])

    def _stand_in(self, node: exp.Expression) -> exp.Expression:
        return cast(exp.Null(), self._parameters[node][1]) if isinstance(node, exp.Parameter) else node


def _text(column: ColumnRef) -> str:
    return f"{column[0]}.{column[1]!r}"


def shown(value: pl.Expr, type_: Type) -> pl.Expr:
    """In the type of the log's column."""
    return value.cast(pl.Int32 if type_ is Type.INT else DTYPES[type_])


def carried(value: pl.Expr, type_: Type) -> pl.Expr:
    """As it travels through the aggregate; there is one zero and one NaN."""
    if type_ is Type.DOUBLE:
        return unsigned_zero(value)
    return value if type_ is Type.STRING else value.cast(pl.Int64)


def _box(box: Box, alias: str | None = None) -> Iterator[NamedExpression]:
    """What a box asks of all columns, or of those of one input."""
    for column, value in box.equals:
        if alias in (None, column[0]):
            yield NamedExpression(f"{_text(column)} = {value!r}", _input(column) == literal(value))
    for column, interval in box.ranges:
        if alias in (None, column[0]):
            yield from _range(column, interval)


def _range(column: ColumnRef, interval: Interval) -> Iterator[NamedExpression]:
    value, lo, hi = _input(column), interval.lo, interval.hi
    terms = [value >= literal(lo)] if lo is not None else []
    terms += [value < literal(hi)] if hi is not None else []
    if terms:
        yield NamedExpression(f"{lo!r} <= {_text(column)} < {hi!r}", reduce(lambda a, b: a & b, terms))


def _input(column: ColumnRef) -> pl.Expr:
    return pl.col(input_column(*column))
