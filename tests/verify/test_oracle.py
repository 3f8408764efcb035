from __future__ import annotations

from datetime import date, datetime
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.arrow import ARROW
from towpath.lang import parse
from towpath.lang.typing import ALLOWED
from towpath.schema import Column, Stream, Type
from towpath.verify import batch_sql, differences, expected
from towpath.verify.render import FUNCTIONS, OPERATORS, RULES

DATA = yaml.safe_load((Path(__file__).parent / "data" / "oracle.yaml").read_text())
TYPES = {"k": Type.BIGINT, "n": Type.INT, "x": Type.DOUBLE, "tag": Type.STRING, "at": Type.TIMESTAMP}
COLUMNS = tuple(Column(name, type_) for name, type_ in TYPES.items())
CATALOG = {name: Stream(name, COLUMNS, "at") for name in DATA["streams"]}


def micros(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000_000)


@pytest.fixture(params=["with time zone", "without time zone"])
def database(request: pytest.FixtureRequest) -> duckdb.DuckDBPyConnection:
    """The streams in a database whose own time zone must not matter."""
    con = duckdb.connect()
    con.execute("SET TimeZone = 'America/New_York'")
    zone = "UTC" if request.param == "with time zone" else None
    for name, rows in DATA["streams"].items():
        columns = list(zip(*rows, strict=True))
        columns[-1] = tuple(micros(t) for t in columns[-1])
        types = [ARROW[c.type] for c in COLUMNS[:-1]] + [pa.timestamp("us", zone)]
        arrays = [pa.array(values, type_) for values, type_ in zip(columns, types, strict=True)]
        con.register(name, pa.table(arrays, names=list(TYPES)))
    return con


def value(given: Any, type_: Type) -> Any:
    if type_ is Type.TIMESTAMP and given is not None:
        return datetime.fromisoformat(given)
    return date.fromisoformat(given) if type_ is Type.DATE else given


@pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: case["name"])
def test_answers(case: dict[str, Any], database: duckdb.DuckDBPyConnection) -> None:
    query = parse(case["sql"], CATALOG, case["name"])
    times = [micros(case.get(key)) for key in ("from", "until", "ceded")]
    answer = expected(database, query, CATALOG, *times)
    columns = [
        pa.array([value(row[position], column.type) for row in case["rows"]], ARROW[column.type])
        for position, column in enumerate(query.columns)
    ]
    wanted = pa.table(columns, names=[c.name for c in query.columns])
    assert answer.schema == wanted.schema
    difference = differences(wanted, answer)
    assert difference is None, f"{difference}\n{batch_sql(query, CATALOG)}"


def test_every_node_of_the_language_is_rendered() -> None:
    inside_others = {"If", "Identifier", "DataType", "Star", "Distinct", "Var"}
    rendered = {node.__name__ for node in (*OPERATORS, *FUNCTIONS, *RULES)}
    assert rendered == {node.__name__ for node in ALLOWED} - inside_others


def test_a_join_with_few_keys_is_no_cross_product() -> None:
    """Ten keys in 300,000 rows a side: nine thousand million pairs by key alone, about 300,000 with the windows."""
    rows = 300_000
    con = duckdb.connect()
    for seed, name in enumerate(("bids", "asks")):
        keys = np.random.default_rng(seed).integers(0, 10, rows)
        con.register(name, pa.table({"k": keys, "at": pa.array(np.arange(rows) * 10_000, pa.timestamp("us", "UTC"))}))
    sql = "SELECT b.k FROM bids [RANGE 50 MS] AS b, asks [RANGE 50 MS] AS a WHERE a.k = b.k"
    answer = expected(con, parse(sql, CATALOG), CATALOG)
    # The eleven rows that are at most 50 ms away, less those beyond the ends.
    pairs = 11 * rows - 30
    assert answer.num_rows == pytest.approx(pairs / 10, rel=0.02)


TUPLES = st.lists(st.tuples(st.integers(0, 1), st.integers(-12, 12)), min_size=1, max_size=12)  # key, milliseconds


def recorded(**streams: list[tuple[int, int]]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    for name, rows in streams.items():
        times = pa.array([t * 1000 for _, t in rows], pa.timestamp("us", "UTC"))
        con.register(name, pa.table({"k": [k for k, _ in rows], "at": times}))
    return con


@settings(max_examples=60, deadline=None)
@given(TUPLES, TUPLES, TUPLES, st.tuples(*[st.integers(1, 6)] * 3))
def test_joins_equal_their_definition(
    a: list[tuple[int, int]], b: list[tuple[int, int]], c: list[tuple[int, int]], ranges: tuple[int, int, int]
) -> None:
    windows = [f"{s} [RANGE {r} MS] AS {s[0]}" for s, r in zip(("asks", "bids", "old"), ranges, strict=True)]
    sql = f"SELECT a.at AS x, b.at AS y, o.at AS z FROM {', '.join(windows)} WHERE a.k = b.k AND b.k = o.k"
    answer = expected(recorded(asks=a, bids=b, old=c), parse(sql, CATALOG), CATALOG)
    found = sorted(zip(*(column.cast(pa.int64()).to_pylist() for column in answer.columns), strict=True))
    wanted = []
    for combination in product(a, b, c):
        times = [t for _, t in combination]
        fits = all(max(times) - t <= r for t, r in zip(times, ranges, strict=True))
        if fits and len({k for k, _ in combination}) == 1:
            wanted.append(tuple(t * 1000 for t in times))
    assert found == sorted(wanted)


@settings(max_examples=60, deadline=None)
@given(TUPLES, st.integers(1, 4), st.integers(1, 4), st.integers(-15, 15), st.integers(0, 30))
def test_windows_equal_their_definition(
    rows: list[tuple[int, int]], slide: int, hops: int, first: int, length: int
) -> None:
    sql = f"SELECT window_start AS w, count(*) AS n FROM bids [RANGE {slide * hops} MS SLIDE {slide} MS]"
    until = first + length
    answer = expected(recorded(bids=rows), parse(sql, CATALOG), CATALOG, first * 1000, until * 1000)
    found = sorted(zip(answer["w"].cast(pa.int64()).to_pylist(), answer["n"].to_pylist(), strict=True))
    starts = [w for w in range(first, until) if w % slide == 0 and w + slide * hops <= until]
    counts = [(w * 1000, sum(w <= t < w + slide * hops for _, t in rows)) for w in starts]
    assert found == [(w, n) for w, n in counts if n]
