"""Random query shapes of every kind the language has, over the streams of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from towpath.lab.testing.shapes import InputShape, SelectShape, Shape
from towpath.schema import Catalog, Column, Stream, Type

MOST_QUERIES = 40  # of a workload
# `{c}` is a column. A condition holds for some tuples and not for others, whatever the constants are.
CONDITIONS: dict[Type, tuple[str, ...]] = {
    Type.INT: (
        "{c} = $key",
        "{c} > $key",
        "{c} <> $key",
        "{c} IN ($key, $key, $int)",
        "{c} BETWEEN $key AND $int",
        "({c} < $key OR {c} > $int)",
        "{c} % 3 = $bit",
        "CAST({c} AS DECIMAL(12, 2)) + 0.75 <= $int",
        "abs({c}) >= $key",
        "{c} IS NOT NULL",
        "CASE WHEN {c} > $key THEN 1 ELSE 0 END = 1",
    ),
    Type.DOUBLE: (
        "{c} > $double",
        "{c} <= $double",
        "{c} * 2 - 1 < $double",
        "{c} / $small >= $double",
        "({c} < $double OR {c} IS NULL)",
        "NOT ({c} BETWEEN 0 AND $double)",
        "floor({c}) % 2 = $bit",
        "sqrt(abs({c})) < $int",
        "round({c}, 1) <> $double",
    ),
    Type.STRING: (
        "{c} = $text",
        "{c} <> $text",
        "{c} IN ($text, $text, $text)",
        "{c} LIKE $pattern",
        "NOT ({c} LIKE $pattern)",
        "{c} IS NULL",
        "{c} >= $text",
        "upper({c}) = upper($text)",
        "length({c}) > $small",
        "starts_with({c}, $letter)",
        """coalesce(json_value('{{"k": "' || {c} || '"}}', '$.k'), $text) <> $text""",
    ),
    Type.BOOLEAN: ("{c}", "NOT {c}", "{c} IS NULL", "({c} OR {c} IS NULL)"),
    Type.TIMESTAMP: ("{c} >= TIMESTAMP $second", "{c} < $second", "second({c}) % 2 = $bit", "{c} IS NOT NULL"),
    Type.DATE: ("{c} = DATE $day", "{c} > $day", "{c} <> DATE $day", "day({c}) <= $small"),
}
CONDITIONS[Type.BIGINT] = CONDITIONS[Type.INT]

COMPUTED: dict[Type, tuple[str, ...]] = {
    Type.INT: (
        "{c} * 2 + $int",
        "{c} / $bit",
        "{c} % $bit",
        "round(CAST({c} AS DECIMAL(12, 2)) * -1.255, 1)",
        "coalesce({c}, $int)",
        "CAST({c} AS STRING)",
        "CASE WHEN {c} > $key THEN 'high' WHEN {c} = $key THEN 'equal' ELSE 'low' END",
        "if({c} > $key, {c}, NULL)",
        "power({c}, 2)",
    ),
    Type.DOUBLE: (
        "{c} * 1.5",
        "round({c}, 1)",
        "round({c})",
        "floor({c})",
        "ceil({c})",
        "CAST({c} AS BIGINT)",
        "least({c}, $double)",
        "greatest({c}, $int, 1)",
        "ln({c})",
        "sqrt({c})",
        "exp({c} / 100)",
        "abs({c} - $double)",
    ),
    Type.STRING: (
        "upper({c})",
        """('{{"k": "' || {c} || '"}}') ->> 'k'""",
        "trim({c})",
        "length({c})",
        "substring({c}, 2)",
        "substring({c}, 1, $small)",
        "{c} || '-' || {c}",
        "concat({c}, $text)",
        """nullif(json_value('{{"k": ["' || {c} || '"]}}', '$.k[0]'), $text)""",
    ),
    Type.BOOLEAN: ("NOT {c}", "{c} IS NULL", "if({c}, 'yes', 'no')", "CAST({c} AS INT)"),
    Type.TIMESTAMP: ("CAST({c} AS DATE)", "minute({c})", "second({c})", "{c} > TIMESTAMP $second"),
    Type.DATE: ("year({c})", "month({c})", "day({c})", "CAST({c} AS TIMESTAMP)", "CAST({c} AS STRING)"),
}
COMPUTED[Type.BIGINT] = COMPUTED[Type.INT]

COUNTS = ("count(*)", "count({c})", "count(DISTINCT {c})")
EXTREMES = ("min({c})", "max({c})")
NUMERIC = (
    "sum({c})",
    "avg({c})",
    "stddev({c})",
    "max({c}) - min({c})",
    "sum(CAST({c} AS DECIMAL(18, 3)) * 0.5)",
    "avg({c} + $int)",
)
# Of these, carriers with plans of their own are needed.
BY_TIME = ("first({c})", "last({c})")
BY_OTHER = ("max_by({c}, {o})", "min_by({c}, {o})")
QUANTILES = ("median({c})", "quantile_cont({c}, 0.9)")
TEXTS = ("string_agg({c}, ',' ORDER BY {o})", "string_agg({c}, '' ORDER BY {o} DESC)")
RANKS = ("row_number", "row_number", "rank", "dense_rank")
WINDOW_TIMES = ("window_start", "window_end")

# Each further input multiplies a join's answer, so the windows shrink with the number of inputs.
JOIN_RANGES = {
    2: ("500 MS", "1 SECOND", "2 SECONDS", "3 SECONDS"),
    3: ("250 MS", "500 MS", "1 SECOND"),
    4: ("250 MS", "500 MS"),
    5: ("250 MS", "500 MS"),
}
WINDOWS = (
    "[RANGE 5 SECONDS]",
    "[RANGE 10 SECONDS]",
    "[RANGE 10 SECONDS SLIDE 5 SECONDS]",
    "[RANGE 6 SECONDS SLIDE 2 SECONDS]",
    "[RANGE 3000 MS SLIDE 500 MS]",
    "[RANGE 1 MINUTE]",
)
SESSIONS = ("[SESSION 250 MS]", "[SESSION 1 SECOND]", "[SESSION 2 SECONDS]", "[SESSION 5 SECONDS]")
JOINED_WINDOWS = ("[RANGE 1 SECOND]", "[RANGE 2 SECONDS SLIDE 1 SECOND]", "[RANGE 3 SECONDS]")

Columns = Sequence[tuple[str, Type]]  # the text of a column, such as @0.price, and its type


def random_shape(rng: Random, catalog: Catalog) -> Shape:
    kinds = (_filter, _filter, _aggregate, _aggregate, _join, _join, _aggregate_of_join, _aggregate_of_derived, _union)
    return rng.choice(kinds)(rng, catalog)


def random_shapes(
    rng: Random, catalog: Catalog, shape: Callable[[Random, Catalog], Shape] = random_shape
) -> list[Shape]:
    """Up to half as many as a workload has queries, some of them rearranged."""
    shapes = [shape(rng, catalog) for _ in range(rng.randint(1, MOST_QUERIES // 2))]
    return [*shapes, *(one.rearranged(rng) for one in shapes if rng.random() < 0.4)]


def random_cuttable_shape(rng: Random, catalog: Catalog) -> Shape:
    """Of a query that can run in pieces on different nodes."""
    return rng.choice((_aggregate_of_join, _aggregate_of_derived))(rng, catalog)


def random_shape_over_views(rng: Random, catalog: Catalog) -> Shape:
    """What is computed of windows: filtered, computed of once more, or joined with its stream or with other windows."""
    joins = (_join_with_view, _join_of_views)
    return rng.choice((_filter_of_view, _aggregate_of_view, _aggregate_of_view, _sessions_of_view, *joins))(
        rng, catalog
    )


def random_shape_of_first_rows(rng: Random, catalog: Catalog) -> Shape:
    """The first tuples, pairs or groups of windows, and what is read of those."""
    return rng.choice((_first_tuples, _first_tuples, _first_groups, _first_groups, _first_pairs, _filter_of_first))(
        rng, catalog
    )


def random_shape_of_sessions(rng: Random, catalog: Catalog) -> Shape:
    """Sessions, and windows beside them; some aggregates go by an order."""
    return rng.choice((_sessions, _sessions, _sessions, _ordered))(rng, catalog)


def random_shape_over_tables(rng: Random, catalog: Catalog, tables: Catalog) -> Shape:
    """Filters, windows, joins and windows of joins whose streams look rows up in tables."""
    count = rng.choice((1, 1, 2))
    streams = _random_streams(rng, catalog, count)
    found = [_random_stream(rng, tables) for _ in range(rng.choice((1, 1, 2)))]
    everything = [*streams, *found]
    columns = [c for number, one in enumerate(everything) for c in _columns_of(one, number)]
    ties = (*_ties(rng, streams), *(_looked_up(rng, everything, count + n) for n in range(len(found))))
    conditions = (*_join_conditions(rng, streams), *_conditions(rng, columns, rng.randint(0, 2)))
    aggregates = rng.choice((False, True))
    window = rng.choice(WINDOWS if count == 1 else JOINED_WINDOWS) if aggregates or count == 2 else ""
    if window and not aggregates:
        window = f"[RANGE {rng.choice(JOIN_RANGES[2])}]"
    joined = tuple(InputShape(table.name, outer=rng.random() < 0.3) for table in found)
    inputs = (*(InputShape(stream.name, window) for stream in streams), *joined)
    if aggregates:
        return Shape((_grouped(rng, columns, inputs, ties, conditions),))
    return Shape((SelectShape(_items(rng, columns), inputs, ties, conditions),))


def _looked_up(rng: Random, relations: Sequence[Stream], number: int) -> str:
    """By a column or an expression of some input before: a stream, or another table."""
    before = rng.randrange(number)
    columns = [text for text, type_ in _columns_of(relations[before], before) if type_.integral]
    value = rng.choice(("{c}", "{c}", "{c} % 3", "abs({c}) % 5 + 1")).format(c=rng.choice(columns))
    return rng.choice((f"{value} = @{number}.k", f"@{number}.k = {value}"))


def _view(rng: Random, stream: Stream) -> tuple[SelectShape, list[Type]]:
    """Windows of one stream by its key, c0, and the types of what comes out."""
    columns = _columns_of(stream, 0)
    numbers = [(text, type_) for text, type_ in columns if type_.numeric]
    text, type_ = rng.choice(numbers)
    aggregates = [("count(*)", Type.BIGINT), (f"max({text})", type_), ("window_start", Type.TIMESTAMP)]
    aggregates = rng.sample(aggregates, rng.randint(1, len(aggregates)))
    key_type = next(type_ for text, type_ in columns if text == "@0.k")
    conditions = _conditions(rng, columns, rng.randint(0, 1))
    items = ("@0.k", *(text for text, _ in aggregates))
    having = rng.choice(((), ("count(*) > $small",)))
    window = InputShape(stream.name, rng.choice(WINDOWS[:-1]))
    select = SelectShape(items, (window,), conditions=conditions, group_by=("@0.k",), having=having)
    return select, [key_type, *(type_ for _, type_ in aggregates)]


def _columns_of_view(types: Sequence[Type], number: int) -> list[tuple[str, Type]]:
    named = [(f"@{number}.c{n}", type_) for n, type_ in enumerate(types)]
    return [*named, (f"@{number}.result_time", Type.TIMESTAMP)]


def _filter_of_view(rng: Random, catalog: Catalog) -> Shape:
    view, types = _view(rng, _random_stream(rng, catalog))
    columns = _columns_of_view(types, 0)
    return Shape((SelectShape(_items(rng, columns), (InputShape(view),), (), _conditions(rng, columns, 1)),))


def _aggregate_of_view(rng: Random, catalog: Catalog) -> Shape:
    """In some, of an aggregate of an aggregate."""
    view, types = _view(rng, _random_stream(rng, catalog))
    if rng.random() < 0.4:
        inner = (InputShape(view, rng.choice(WINDOWS[:3])),)
        view, types = SelectShape(("@0.c0", "count(*)"), inner, group_by=("@0.c0",)), [types[0], Type.BIGINT]
    inputs = (InputShape(view, rng.choice(WINDOWS)),)
    return Shape((_grouped(rng, _columns_of_view(types, 0), inputs),))


def _join_with_view(rng: Random, catalog: Catalog) -> Shape:
    stream = _random_stream(rng, catalog)
    view, types = _view(rng, stream)
    columns = [*_columns_of(stream, 0), *_columns_of_view(types, 1)]
    ranges = [f"[RANGE {rng.choice(('1 MS', '2 SECONDS', '5 SECONDS'))}]" for _ in range(2)]
    inputs = (InputShape(stream.name, ranges[0]), InputShape(view, ranges[1]))
    return Shape((SelectShape(_items(rng, columns), inputs, ("@0.k = @1.c0",), _conditions(rng, columns, 1)),))


def _join_of_views(rng: Random, catalog: Catalog) -> Shape:
    (left, left_types), (right, right_types) = (_view(rng, _random_stream(rng, catalog)) for _ in range(2))
    columns = [*_columns_of_view(left_types, 0), *_columns_of_view(right_types, 1)]
    inputs = (InputShape(left, "[RANGE 5 SECONDS]"), InputShape(right, f"[RANGE {rng.choice(('1 MS', '5 SECONDS'))}]"))
    return Shape((SelectShape(_items(rng, columns), inputs, ("@0.c0 = @1.c0",), _conditions(rng, columns, 1)),))


def _first_tuples(rng: Random, catalog: Catalog) -> Shape:
    stream = _random_stream(rng, catalog)
    columns = _columns_of(stream, 0)
    select = SelectShape(
        (*_items(rng, columns), *rng.choice(((), WINDOW_TIMES))),
        (InputShape(stream.name, rng.choice(WINDOWS)),),
        conditions=_conditions(rng, columns, rng.randint(0, 1)),
    )
    return Shape((_first(rng, select, [text for text, _ in columns]),))


def _first_pairs(rng: Random, catalog: Catalog) -> Shape:
    streams = _random_streams(rng, catalog, 2)
    window = rng.choice(JOINED_WINDOWS)
    columns = [c for number, stream in enumerate(streams) for c in _columns_of(stream, number)]
    inputs = tuple(InputShape(stream.name, window) for stream in streams)
    select = SelectShape(_items(rng, columns), inputs, _ties(rng, streams), _join_conditions(rng, streams))
    return Shape((_first(rng, select, [text for text, _ in columns]),))


def _first_groups(rng: Random, catalog: Catalog) -> Shape:
    """By values that every engine has exactly: else it is chance which of two groups is the first."""
    stream = _random_stream(rng, catalog)
    columns = _columns_of(stream, 0)
    groups = list(dict(_group(rng, columns) for _ in range(rng.randint(1, 2))))
    text, type_ = rng.choice(columns)
    calls = COUNTS + EXTREMES if type_ is not Type.BOOLEAN else COUNTS
    aggregates = [call.format(c=text) for call in rng.sample(calls, rng.randint(1, 2))]
    shown = [group for group in groups if rng.random() < 0.8]
    select = SelectShape(
        (*shown, *aggregates),
        (InputShape(stream.name, rng.choice(WINDOWS)),),
        conditions=_conditions(rng, columns, rng.randint(0, 1)),
        group_by=tuple(groups),
        having=rng.choice(((), ("count(*) > $bit",))),
    )
    return Shape((_first(rng, select, [*groups, *aggregates]),))


def _filter_of_first(rng: Random, catalog: Catalog) -> Shape:
    view, types = _view(rng, _random_stream(rng, catalog))
    view = _first(rng, replace(view, having=()), list(view.items), shown=False)
    columns = _columns_of_view(types, 0)
    return Shape((SelectShape(_items(rng, columns), (InputShape(view),), (), _conditions(rng, columns, 1)),))


def _first(rng: Random, select: SelectShape, values: Sequence[str], shown: bool = True) -> SelectShape:
    keys = [value + rng.choice(("", " DESC", " NULLS LAST", " DESC NULLS FIRST")) for value in rng.sample(values, 1)]
    keys += [value for value in rng.sample(values, min(2, len(values))) if rng.random() < 0.5]
    if rng.random() < 0.25:
        return replace(select, first=f"ORDER BY {', '.join(keys)} LIMIT $small")
    partition = f"PARTITION BY {rng.choice(values)} " if rng.random() < 0.5 else ""
    rank = f"{rng.choice(RANKS)}() OVER ({partition}ORDER BY {', '.join(keys)})"
    items = (*select.items, rank) if shown and rng.random() < 0.5 else select.items
    return replace(select, items=items, first=f"QUALIFY {rank} <= $small")


def _sessions(rng: Random, catalog: Catalog) -> Shape:
    stream = _random_stream(rng, catalog)
    columns = _columns_of(stream, 0)
    inputs = (InputShape(stream.name, rng.choice(SESSIONS)),)
    select = _grouped(rng, columns, inputs, conditions=_conditions(rng, columns, rng.randint(0, 2)))
    return Shape((_with_order(rng, select, columns) if rng.random() < 0.3 else select,))


def _ordered(rng: Random, catalog: Catalog) -> Shape:
    stream = _random_stream(rng, catalog)
    columns = _columns_of(stream, 0)
    return Shape((_with_order(rng, _grouped(rng, columns, (InputShape(stream.name, rng.choice(WINDOWS)),)), columns),))


def _sessions_of_view(rng: Random, catalog: Catalog) -> Shape:
    view, types = _view(rng, _random_stream(rng, catalog))
    return Shape((_grouped(rng, _columns_of_view(types, 0), (InputShape(view, rng.choice(SESSIONS)),)),))


def _filter(rng: Random, catalog: Catalog) -> Shape:
    stream = _random_stream(rng, catalog)
    columns = _columns_of(stream, 0)
    conditions = _conditions(rng, columns, rng.randint(0, 3))
    return Shape((SelectShape(_items(rng, columns), (InputShape(stream.name),), conditions=conditions),))


def _aggregate(rng: Random, catalog: Catalog) -> Shape:
    stream = _random_stream(rng, catalog)
    columns = _columns_of(stream, 0)
    inputs = (InputShape(stream.name, rng.choice(WINDOWS)),)
    return Shape((_grouped(rng, columns, inputs, conditions=_conditions(rng, columns, rng.randint(0, 2))),))


def _join(rng: Random, catalog: Catalog) -> Shape:
    streams = _random_streams(rng, catalog, rng.choice((2, 2, 2, 2, 2, 3, 3, 4, 5)))
    return Shape((_joined(rng, streams),))


def _aggregate_of_join(rng: Random, catalog: Catalog) -> Shape:
    """The window of the join is the window of the aggregate too."""
    streams = _random_streams(rng, catalog, 2)
    window = rng.choice(JOINED_WINDOWS)
    columns = [c for number, stream in enumerate(streams) for c in _columns_of(stream, number)]
    inputs = tuple(InputShape(stream.name, window) for stream in streams)
    return Shape((_grouped(rng, columns, inputs, _ties(rng, streams), _join_conditions(rng, streams)),))


def _aggregate_of_derived(rng: Random, catalog: Catalog) -> Shape:
    streams = _random_streams(rng, catalog, rng.choice((2, 2, 3)))
    inner = _joined(rng, streams, computed=False)
    types = {text: type_ for number, stream in enumerate(streams) for text, type_ in _columns_of(stream, number)}
    columns = [(f"@0.c{position}", types[item]) for position, item in enumerate(inner.items)]
    inputs = (InputShape(inner, rng.choice(WINDOWS)),)
    return Shape((_grouped(rng, columns, inputs, conditions=_conditions(rng, columns, rng.randint(0, 1))),))


def _union(rng: Random, catalog: Catalog) -> Shape:
    """The same columns of several streams, or of one stream under several conditions."""
    streams = _random_streams(rng, catalog, rng.randint(2, 3))
    shared = [c for c in _columns_of(streams[0], 0) if all(c in _columns_of(s, 0) for s in streams)]
    items = tuple(text for text, _ in rng.sample(shared, min(len(shared), 3))) or ("1",)
    selects = [
        SelectShape(items, (InputShape(s.name),), conditions=_conditions(rng, _columns_of(s, 0), rng.randint(0, 2)))
        for s in streams
    ]
    return Shape(tuple(selects))


def _joined(rng: Random, streams: Sequence[Stream], computed: bool = True) -> SelectShape:
    columns = [c for number, stream in enumerate(streams) for c in _columns_of(stream, number)]
    inputs = tuple(InputShape(s.name, f"[RANGE {rng.choice(JOIN_RANGES[len(streams)])}]") for s in streams)
    items = _items(rng, columns, computed)
    return SelectShape(items, inputs, _ties(rng, streams), _join_conditions(rng, streams))


def _ties(rng: Random, streams: Sequence[Stream]) -> tuple[str, ...]:
    return tuple(f"@{rng.randrange(number)}.k = @{number}.k" for number in range(1, len(streams)))


def _join_conditions(rng: Random, streams: Sequence[Stream]) -> tuple[str, ...]:
    """Filters on single inputs, and sometimes a comparison across two of them."""
    conditions: list[str] = []
    for number, stream in enumerate(streams):
        conditions += _conditions(rng, _columns_of(stream, number), rng.randint(0, 1))
    numbers = [[text for text, type_ in _columns_of(s, n) if type_.numeric] for n, s in enumerate(streams)]
    if rng.choice((False, True)):
        left, right = rng.choice(numbers[0]), rng.choice(numbers[-1])
        conditions.append(f"{left} {rng.choice(('<=', '<>', '>'))} {right} + $small")
    return tuple(conditions)


def _grouped(
    rng: Random,
    columns: Columns,
    inputs: tuple[InputShape, ...],
    ties: tuple[str, ...] = (),
    conditions: tuple[str, ...] = (),
) -> SelectShape:
    groups = dict(_group(rng, columns) for _ in range(rng.randint(0, 2)))
    aggregates = tuple(_aggregate_call(rng, columns) for _ in range(rng.randint(1, 3)))
    times = tuple(rng.sample(WINDOW_TIMES, rng.randint(0, 2)))
    having: tuple[str, ...] = rng.choice(
        ((), (), ("count(*) > $small",), (f"count({columns[0][0]}) <= $int", "count(*) <> 1"))
    )
    having += tuple(rng.choice(CONDITIONS[t]).format(c=f"({g})") for g, t in groups.items() if rng.random() < 0.2)
    computed = tuple(rng.choice(COMPUTED[t]).format(c=f"({g})") for g, t in groups.items() if rng.random() < 0.4)
    shown = tuple(g for g in groups if rng.random() < 0.9)
    return SelectShape((*shown, *computed, *aggregates, *times), inputs, ties, conditions, tuple(groups), having)


def _group(rng: Random, columns: Columns) -> tuple[str, Type]:
    """A column or an expression of few values, with its type; without constants, since it stands in several places.

    Some are what other queries compute of a column that they group by: who shares a carrier must not mix them up.
    """
    text, type_ = rng.choice(columns)
    match type_:
        case Type.DOUBLE:
            return f"floor({text} / 50)", Type.BIGINT
        case Type.TIMESTAMP:
            return f"minute({text})", Type.INT
        case Type.STRING:
            return rng.choice(((text, type_), (f"lower({text})", type_), (f"length({text})", Type.INT)))
        case Type.INT | Type.BIGINT:
            return rng.choice(((text, type_), (f"{text} % 3", Type.BIGINT), (f"CAST({text} AS STRING)", Type.STRING)))
    return text, type_


def _aggregate_call(rng: Random, columns: Columns) -> str:
    text, type_ = rng.choice(columns)
    calls: tuple[str, ...] = COUNTS
    calls += EXTREMES if type_ is not Type.BOOLEAN else ()
    calls += NUMERIC if type_.numeric else ()
    return rng.choice(calls).format(c=text)


def _with_order(rng: Random, select: SelectShape, columns: Columns) -> SelectShape:
    """With an aggregate that goes by an order."""
    text, type_ = rng.choice(columns)
    other = rng.choice([name for name, other_type in columns if other_type is not Type.BOOLEAN])
    calls = BY_TIME + BY_OTHER + (QUANTILES if type_.numeric else TEXTS if type_ is Type.STRING else ())
    return replace(select, items=(*select.items, rng.choice(calls).format(c=text, o=other)))


def _items(rng: Random, columns: Columns, computed: bool = True) -> tuple[str, ...]:
    items = []
    for text, type_ in rng.sample(columns, rng.randint(1, min(4, len(columns)))):
        change = computed and rng.choice((False, True))
        items.append(rng.choice(COMPUTED[type_]).format(c=text) if change else text)
    # The same calculation with another constant: who shares it must not take one for the other.
    items += [item for item in items if "$" in item and rng.random() < 0.5]
    return tuple(items)


def _conditions(rng: Random, columns: Columns, count: int) -> tuple[str, ...]:
    chosen = [rng.choice(columns) for _ in range(count)]
    return tuple(rng.choice(CONDITIONS[type_]).format(c=text) for text, type_ in chosen)


def _columns_of(stream: Stream, number: int) -> list[tuple[str, Type]]:
    def text(column: Column) -> str:
        return f"@{number}.{column.name}"

    return [(text(c), c.type) for c in stream.columns]


def _random_stream(rng: Random, catalog: Catalog) -> Stream:
    return catalog[rng.choice(sorted(catalog))]


def _random_streams(rng: Random, catalog: Catalog, count: int) -> list[Stream]:
    """A stream may come twice: a join with itself."""
    return [_random_stream(rng, catalog) for _ in range(count)]
