"""A template as one streaming DataFrame: sources -> shared join -> match with assignments -> aggregate -> outputs.

The join comes before the match and is shared: its state holds each tuple once, however many fragments join it. Only
tuples that some fragment's own conditions let pass enter it.

Columns on the way: `i0_price` is column price of source 0, `i0__us` its event time in microseconds, `i0__stream` its
stream's name. `_event` is the one column that carries Spark's watermark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from towpath.lang import infer
from towpath.lang.query import RANK, SESSIONS, WINDOW
from towpath.plan.assignment import START, input_column, name, switch, widened
from towpath.plan.operators import ColumnRef
from towpath.plan.pipeline import Slot
from towpath.plan.ranking import RANKING
from towpath.plan.templates import Probe, Template
from towpath.plan.trees import Grouped
from towpath.schema import BEFORE_1970_US, Type
from towpath.spark.aggregates import aggregate, argument, orders, pair
from towpath.spark.expressions import SparkCompiler
from towpath.spark.types import ddl
from towpath.spark.universal_worker import first_rows

# Spark marks event times with this metadata; a derived time is an event time too, with the delay already applied.
EVENT_TIME = {"spark.watermarkDelayMs": 0}
# A literal of each type, to find the type of what has parameters: IN takes nothing else.
SOME = {
    Type.BOOLEAN: exp.false(),
    Type.INT: exp.Literal.number(0),
    Type.BIGINT: exp.Literal.number(2**31),
    Type.DOUBLE: exp.Literal.number("0.5"),
    Type.STRING: exp.Literal.string(""),
    Type.TIMESTAMP: exp.cast(exp.Literal.string("1970-01-01"), "TIMESTAMP"),
    Type.DATE: exp.cast(exp.Literal.string("1970-01-01"), "DATE"),
}
# The assignment table's columns that are needed after the aggregate.
CONSTANT = re.compile(rf"[xh]\d+_p\d+|(having|computed)_mask\d+|{RANKING}")


def column_types(template: Template) -> dict[ColumnRef, Type]:
    return {
        (f"i{n}", column): Type(type_)
        for n, schema_class in enumerate(template.family.classes)
        for column, type_ in schema_class
        if column
    }


def build(
    template: Template, inputs: Sequence[DataFrame], assignments: DataFrame, banned: Sequence[int] = ()
) -> DataFrame:
    """`inputs` are the sources in order, with the columns described above; the result goes to the results log.

    Of `banned` fragments, whose windows may be open, nothing is calculated; whoever writes results leaves them out.
    """
    return _CarrierQuery(template, assignments, banned).build(inputs)


class _CarrierQuery:
    def __init__(self, template: Template, assignments: DataFrame, banned: Sequence[int]) -> None:
        self._banned = banned
        self._template = template
        self._assignments = assignments
        self._types = column_types(template)
        self._sources = [f"i{n}" for n in range(len(template.family.classes))]

    def build(self, inputs: Sequence[DataFrame]) -> DataFrame:
        rows = self._match(self._join(inputs))
        return self._aggregated(rows) if self._template.family.window else self._plain(rows)

    # --- the shared join ---------------------------------------------------------------------------------------------

    def _join(self, inputs: Sequence[DataFrame]) -> DataFrame:
        if len(inputs) == 1:
            return inputs[0]
        wanted = [self._wanted(df, source) for df, source in zip(inputs, self._sources, strict=True)]
        joined = wanted[0]
        for n, right in enumerate(wanted[1:], start=1):
            joined = self._join_step(joined, right, n)
        return joined

    def _wanted(self, df: DataFrame, source: str) -> DataFrame:
        """The tuples of one source that at least one fragment could use."""
        mine = [c for c in dict.fromkeys(c for p in self._template.probes for c in p) if c[0] == source]
        always = [c for c in mine if all(c in p for p in self._template.probes)]
        table = self._table(f"wanted_{source}").withColumn(
            "_key", F.xxhash64(F.col(f"s_{source}"), *(F.col(name("e", c)) for c in always))
        )
        condition = F.xxhash64(F.col(f"{source}__stream"), *(self._probed(c) for c in always)) == F.col("_key")
        terms = [self._of_stream(source), *map(self._equal, mine), *self._in_ranges(source)]
        condition = reduce(Column.__and__, terms, condition)
        return df.join(F.broadcast(table), condition, "left_semi")

    def _join_step(self, left: DataFrame, right: DataFrame, n: int) -> DataFrame:
        """Joins source n to what is joined so far. The state of both sides is kept for the family's longest window."""
        new = self._sources[n]
        keys = [k for k in self._template.family.keys if max(k[0][0], k[1][0]) == new]
        reach = F.expr(f"interval {self._template.family.reach_us} microseconds")
        right = right.withColumnRenamed("_event", "_event_right")
        near = (F.col("_event_right") >= F.col("_event") - reach) & (F.col("_event_right") <= F.col("_event") + reach)
        condition = reduce(Column.__and__, (self._column(a) == self._column(b) for a, b in keys), near)
        joined = left.join(right, condition, "inner")
        kept = [c for c in joined.columns if c not in ("_event", "_event_right")]
        earliest = F.least("_event", "_event_right").alias("_event", metadata=EVENT_TIME)
        return joined.select(*kept, earliest)

    # --- the match ---------------------------------------------------------------------------------------------------

    def _match(self, rows: DataFrame) -> DataFrame:
        """Tags every row with its fragments: one lookup for each set of equality columns, then the other conditions."""
        probes = self._template.probes
        keys = [self._probe_key(n, probe, self._probed) for n, probe in enumerate(probes)]
        lookup = F.explode(F.array(*keys)) if len(keys) > 1 else keys[0]
        table_key = reduce(
            lambda otherwise, n: F.when(
                F.col("_probe") == n, self._probe_key(n, probes[n], lambda c: F.col(name("e", c)), prefix="s_")
            ).otherwise(otherwise),
            range(len(probes)),
            F.lit(None).cast("bigint"),
        )
        table = self._table("matched").withColumn("_key", table_key)
        return rows.withColumn("_lookup", lookup).join(F.broadcast(table), self._condition(), "inner")

    def _probe_key(self, n: int, probe: Probe, value: Callable[[ColumnRef], Column], prefix: str = "") -> Column:
        streams = [F.col(f"{prefix}{s}" if prefix else f"{s}__stream") for s in self._sources]
        return F.xxhash64(F.lit(n), *streams, *(value(c) for c in probe))

    def _condition(self) -> Column:
        template = self._template
        terms = [F.col("_lookup") == F.col("_key")]
        # The key is a hash: the values themselves decide.
        terms += [self._of_stream(s) for s in self._sources]
        terms += [self._equal(c) for c in dict.fromkeys(c for p in template.probes for c in p)]
        for source in self._sources:
            terms += self._in_ranges(source)
        if template.family.reach_us:
            terms += [self._latest() - F.col(f"{s}__us") <= F.col(f"d_{s}") for s in self._sources]
        compile_ = self._compiler("r")
        for n, slot in enumerate(template.residuals):
            terms.append(~self._uses("residuals", n) | F.coalesce(compile_(n, slot), F.lit(False)))
        return reduce(Column.__and__, terms)

    def _of_stream(self, source: str) -> Column:
        # Not an equality alone: Spark would make it a second key of the join, and a lookup by one number is the
        # fastest that it has.
        asked = F.col(f"s_{source}")
        return asked.isNull() | (F.col(f"{source}__stream") == asked)

    def _equal(self, column: ColumnRef) -> Column:
        asked = F.col(name("e", column))
        return asked.isNull() | (self._column(column) == asked)

    def _in_ranges(self, source: str) -> list[Column]:
        terms = []
        for column in self._template.ranges:
            if column[0] == source:
                value, lo, hi = self._column(column), F.col(name("lo", column)), F.col(name("hi", column))
                unbounded = lo.isNull() & hi.isNull()
                inside = (lo.isNull() | (value >= lo)) & (hi.isNull() | (value < hi)) & value.isNotNull()
                terms.append(unbounded | inside)
        return terms

    # --- outputs -----------------------------------------------------------------------------------------------------

    def _plain(self, rows: DataFrame) -> DataFrame:
        compile_ = self._compiler("x")
        return rows.select(
            F.col("_fragment"),
            F.timestamp_micros(self._latest()).alias("_time"),
            F.timestamp_micros(self._earliest()).alias("_born"),
            *(self._column(c).alias(name("c", c)) for c in self._template.columns),
            *(
                F.when(self._uses("computed", n), compile_(n, s)).cast(s.type.value).alias(f"x{n}")
                for n, s in enumerate(self._template.computed)
            ),
        )

    def _aggregated(self, rows: DataFrame) -> DataFrame:
        template = self._template
        plain = self._compiler("")
        constants = [c for c in self._assignments.columns if CONSTANT.fullmatch(c)]
        arguments = {n: self._argument(plain, n, s) for n, s in enumerate(template.aggregates)}
        tagged = rows.select(
            "_fragment",
            "w_range",
            *constants,
            (self._latest() if self._is_session else self._window_end()).alias("_end"),
            *(F.when(self._uses("groups", n), plain(n, s)).alias(f"g{n}") for n, s in enumerate(template.groups)),
            *(column.alias(f"v{n}") for n, column in arguments.items()),
        )
        # A fragment's constants are part of the key: they are the same for all its rows, and the result needs them
        # after the fragment has left the table.
        event = F.timestamp_micros(F.col("_end") + F.lit(BEFORE_1970_US + self._shift)).alias(
            "_time", metadata=EVENT_TIME
        )
        groups = [f"g{n}" for n in range(len(template.groups))]
        kept = ["_fragment", "w_range", *constants, *groups]
        aggregated = (
            tagged.select(event, *kept, *(f"v{n}" for n in arguments))
            .groupBy(self._session() if self._is_session else "_time", *kept)
            .agg(
                # Spark wants at least one, and GROUP BY alone has none.
                F.count(F.lit(1)).alias("_rows"),
                *self._bounds(),
                *(self._aggregate(n, s).alias(f"a{n}") for n, s in enumerate(template.aggregates)),
            )
        )
        return self._after_aggregate(aggregated)

    def _after_aggregate(self, aggregated: DataFrame) -> DataFrame:
        template = self._template
        rows = aggregated.withColumns(self._times())
        having = self._compiler("h", after=True)
        for n, slot in enumerate(template.having):
            rows = rows.where(~self._still_uses("having", n) | F.coalesce(having(n, slot), F.lit(False)))
        computed = self._compiler("x", after=True)
        outputs = rows.select(
            "_fragment",
            "_time",
            "_born",
            *(_typed(f"g{n}", s) for n, s in enumerate(template.groups)),
            *([F.col(START)] if self._is_session else []),
            *(_typed(f"a{n}", s) for n, s in enumerate(template.aggregates)),
            *(
                F.when(self._still_uses("computed", n), computed(n, s)).cast(s.type.value).alias(f"x{n}")
                for n, s in enumerate(template.computed)
            ),
            *([F.lit(None).cast("bigint").alias(RANK), F.col(RANKING)] if template.family.ranked else []),
        )
        return self._first_rows(outputs) if template.family.ranked else outputs

    def _first_rows(self, outputs: DataFrame) -> DataFrame:
        """Of each window the rows that are its fragment's first ones; what says which ones goes."""
        template = self._template
        slots = {"g": template.groups, "a": template.aggregates, "x": template.computed}
        kept = {"_fragment": Type.INT, "_time": Type.TIMESTAMP, "_born": Type.TIMESTAMP}
        kept |= {f"{prefix}{n}": s.type for prefix, part in slots.items() for n, s in enumerate(part)}
        # A window's rows have to be together.
        return outputs.repartition("_fragment", "_time").mapInArrow(first_rows, ddl({**kept, RANK: Type.BIGINT}))

    @property
    def _is_session(self) -> bool:
        return self._template.family.window == SESSIONS

    @property
    def _shift(self) -> int:
        """Microseconds by which sessions are later than their tuples.

        A tuple that may still come at the end of one, when event time is there, is to find it.
        """
        return 1 if self._is_session else 0

    def _session(self) -> Column:
        """Spark joins sessions that touch, so tuples that are exactly the gap apart are of one."""
        gap = F.make_interval(secs=(F.col("w_range").cast("decimal(18,0)") / F.lit(1_000_000)).cast("decimal(18,6)"))
        return F.session_window("_time", gap).alias("_session")

    def _bounds(self) -> list[Column]:
        """When a session began and ended, as aggregates.

        The bounds that Spark has are part of the key: a condition on those it would ask of each tuple by itself,
        before it has joined the sessions.
        """
        us = F.unix_micros("_time")
        return [F.min(us).alias("_first"), F.max(us).alias("_last")] if self._is_session else []

    def _times(self) -> dict[str, Column]:
        """When a window was born, began and ended."""
        if not self._is_session:
            end = F.unix_micros("_time") - F.lit(BEFORE_1970_US)
            return {"_born": F.timestamp_micros(end - F.col("w_range")), "_time": F.timestamp_micros(end)}
        first, last = (F.col(name) - F.lit(BEFORE_1970_US + self._shift) for name in ("_first", "_last"))
        # Who has not seen the gap before the first tuple does not know that it is the first.
        return {
            "_born": F.timestamp_micros(first - F.col("w_range")),
            START: F.timestamp_micros(first),
            "_time": F.timestamp_micros(last + F.col("w_range")),
        }

    def _window_end(self) -> Column:
        """The end of the window, or of each window, that holds the row's time. Windows are aligned to the epoch."""
        time, length, hop = self._latest(), F.col("w_range"), F.col("w_slide")
        if self._template.family.window == "tumbling":
            return time - F.pmod(time, length) + length
        last_start = time - F.pmod(time, hop)
        return F.explode(F.sequence(last_start + hop, last_start + length, hop))

    def _argument(self, compile_: TemplateCompiler, n: int, slot: Slot) -> Column:
        if isinstance(slot.expr.this, exp.Star):
            return F.lit(1)
        value = compile_(n, Slot(argument(slot.expr), slot.type))
        if (by := orders(slot.expr)) is not None:
            value = pair(slot.expr, compile_(n, Slot(by, slot.type)), value)
        return F.when(self._uses("aggregates", n), value)

    def _aggregate(self, n: int, slot: Slot) -> Column:
        type_ = (
            Type.INT if isinstance(slot.expr.this, exp.Star) else self._compiler("").type_of(argument(slot.expr), slot)
        )
        return aggregate(slot.expr, F.col(f"v{n}"), type_)

    # --- columns -----------------------------------------------------------------------------------------------------

    def _table(self, use: str) -> DataFrame:
        """The assignment table; every use reports the version it read."""
        return self._assignments.observe(f"version_{use}", F.max("_version").alias("version"))

    def _column(self, column: ColumnRef) -> Column:
        return F.col(input_column(*column))

    def _probed(self, column: ColumnRef) -> Column:
        return self._column(column).cast(widened(self._types[column]).value)

    def _latest(self) -> Column:
        times = [F.col(f"{s}__us") for s in self._sources]
        return times[0] if len(times) == 1 else F.greatest(*times)

    def _earliest(self) -> Column:
        times = [F.col(f"{s}__us") for s in self._sources]
        return times[0] if len(times) == 1 else F.least(*times)

    def _uses(self, part: str, n: int) -> Column:
        mask, bit = switch(part, n)
        return F.col(mask).bitwiseAND(F.lit(bit).cast("bigint")) != 0

    def _still_uses(self, part: str, n: int) -> Column:
        """When a window closes, its fragment may have left the table long ago."""
        uses = self._uses(part, n)
        return uses & ~F.col("_fragment").isin(list(self._banned)) if self._banned else uses

    def _compiler(self, prefix: str, *, after: bool = False) -> TemplateCompiler:
        known: dict[exp.Expression, Column] = {}
        if after:
            known = {Grouped(this=s.expr.copy()): F.col(f"g{n}") for n, s in enumerate(self._template.groups)}
            known |= {s.expr: F.col(f"a{n}") for n, s in enumerate(self._template.aggregates)}
        return TemplateCompiler(self._types, prefix, known, START if self._is_session else "_born")


def _typed(column: str, slot: Slot) -> Column:
    """In the slot's own type: integers are calculated as BIGINT."""
    return F.col(column).cast(slot.type.value).alias(column)


class TemplateCompiler:
    """Compiles the slots of one part of a template.

    Constants are the columns `<prefix><slot>_p<k>` of the assignment table.
    """

    def __init__(
        self, types: dict[ColumnRef, Type], prefix: str, known: dict[exp.Expression, Column], start: str = "_born"
    ) -> None:
        self._start = start
        self._types = types
        self._prefix = prefix
        self._known = known

    def __call__(self, n: int, slot: Slot) -> Column:
        def resolve(node: exp.Expression) -> Column | None:
            if node in self._known:
                return self._known[node]
            if isinstance(node, exp.Parameter):
                return F.col(f"{self._prefix}{n}_p{node.name}")
            if isinstance(node, exp.Column):
                if node.table == WINDOW:
                    return F.col(self._start if node.name == "window_start" else "_time")
                return F.col(input_column(node.table, node.name))
            return None

        return SparkCompiler(resolve, lambda node: self.type_of(node, slot))(slot.expr)

    def type_of(self, node: exp.Expression, slot: Slot) -> Type:
        concrete = Slot(node, slot.type).plain.transform(
            lambda e: SOME[slot.params[int(e.name)]].copy() if isinstance(e, exp.Parameter) else e
        )
        return infer(concrete, lambda alias, column: Type.TIMESTAMP if alias == WINDOW else self._types[alias, column])
