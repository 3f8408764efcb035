"""What `check` accepts runs, and answers as DuckDB does: queries that are odd, wide, deep or long, in one job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.folders import BEGINNING_US, HEADER, SECOND

from towpath.api.running import start
from towpath.arrow import arrow_schema
from towpath.lang import parse
from towpath.lang.budget import DEEPEST, MOST_WIDE
from towpath.plan.assignment import columns, input_column, log_columns
from towpath.plan.assignment import rows as assignment_rows
from towpath.plan.cut import plan
from towpath.plan.templates import template_of
from towpath.schema import Column, Stream, Type
from towpath.spark.assignments import table_columns
from towpath.spark.carrier import build, column_types
from towpath.verify.compare import differences
from towpath.verify.oracle import expected

pytestmark = pytest.mark.spark

SCHEMA = {"k": "bigint", "x": "double", "t": "string", "b": "boolean", "d": "date", "at": "timestamp"}
TEXTS = (
    *("", "a", "b", "ab", "abc", "aab", "abab", "a%b", "a_b", "a\\b", "a\\", "\\", "%", "_", "axb", "C:\\Windows\\x"),
    *("C:\\Users", "a\nb", "\n", "a.b", "a*b", "(a", "[a]", "a$", "^a", "é", "e\u0301", "日本", "😀", "a😀b", "😀😀"),
    *("a😀é😀b" * 30, "a" * 60_000, "ab" * 5_000 + "zq", "\\Qa\\E", "a  b", "A", "ß", "𝒳y", "{2}", "a\tb"),
)
PATTERNS = (
    *("", "%", "%%", "_", "__", "_%", "%_", "%_%", "a", "a%", "%a", "%a%", "a%b", "a_b", "%a_b%", "a\\_b", "a\\%b"),
    *("C:\\Windows%", "C:\\%", "%\\", "\\", "\\\\", "%\\%", "a\\", "%a%b%", "%b%a%", "a%b%a", "a%%b", "_😀_", "%😀%"),
    *("😀_", "a_é%", "%é", "e_", "_\u0301", "日_", "%.%", "a.b", "a*b", "(a", "[a]", "a$", "^a", "%\n%", "a_b%"),
    *(
        "%a%a%a%a%a%a%a%zq",
        "%a%a%a%a%a%a%a%a%a%a%a%b",
        "%_a_%_a_%_a_%_a_%zq",
        "%ab%ab%ab%zq",
        "aab%aab",
        "%ab",
        "ab%ab",
    ),
    *("\\Q%", "%\\E", "{2}", "a  b", "A", "ß", "𝒳_", "%aba%bab%", "%" * 500 + "a"),
)
MANY = range(70)


def nested(levels: int) -> str:
    text = "k"
    for _ in range(levels):
        text = f"CASE {text} WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 1 END"
    return text


def balanced(conditions: list[str]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return f"({balanced(conditions[:middle])} OR {balanced(conditions[middle:])})"


JOINED = ", ".join(f"s [RANGE 1 SECOND] AS {alias}" for alias in "abcde")
TIES = " AND ".join(f"{one}.k = {other}.k AND {one}.d = {other}.d" for one, other in zip("abcd", "bcde", strict=True))
PAIRS = [(one, other) for one in "abcde" for other in "abcde" if one < other]

QUERIES = {
    "groups only": "SELECT k FROM s [RANGE 2 SECONDS] GROUP BY k",
    "groups and HAVING": "SELECT k + 1 AS n FROM s [RANGE 2 SECONDS] GROUP BY k + 1, b HAVING k + 1 > 2 AND b",
    "windows only": "SELECT window_start, window_end FROM s [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY window_start",
    "HAVING only": "SELECT window_end FROM s [RANGE 2 SECONDS] HAVING true",
    "groups of a join": "SELECT a.k FROM s [RANGE 1 SECOND] AS a, s [RANGE 1 SECOND] AS b WHERE a.k = b.k GROUP BY a.k",
    "constants": "SELECT 1 AS one, 'x' AS x, NOT true AS f, DATE '0001-01-01' AS d, - 9223372036854775808 AS m FROM s",
    "always": "SELECT k FROM s WHERE true AND 1 = 1 AND k = k",
    "never": "SELECT k FROM s WHERE false OR 1 > 2",
    "times": "SELECT k FROM s WHERE at < TIMESTAMP '9999-12-31 23:59:59.999999' AND d > '0001-01-01'",
    "texts": "SELECT t FROM s WHERE t IN ('a\\b', 'it''s', '😀', 'a\nb', '', '\\') OR t > '日'",
    "long text": f"SELECT k FROM s WHERE t = '{'a' * 60_000}'",
    "computed": f"SELECT {', '.join(f'k + {n} AS c{n}' for n in MANY)} FROM s",
    "aggregates": f"SELECT {', '.join(f'sum(k + {n}) AS c{n}' for n in MANY)} FROM s [RANGE 2 SECONDS]",
    "keys": f"SELECT {', '.join(f'k + {n} AS c{n}' for n in MANY)} FROM s [RANGE 2 SECONDS] "
    f"GROUP BY {', '.join(f'k + {n}' for n in MANY)} HAVING k + 60 > 61",
    "as wide as can be": f"SELECT {', '.join(f'k + {n} AS c{n}' for n in range(MOST_WIDE))} FROM s",
    "columns": f"SELECT {', '.join(f'k AS c{n}' for n in range(300))} FROM s",
    "cases": f"SELECT {nested(6)} AS n FROM s",
    "branches": f"SELECT CASE k {' '.join(f'WHEN {n} THEN {n * n}' for n in range(600))} END AS n FROM s",
    "deep": f"SELECT {'(' * (DEEPEST - 2)}k{' + 1)' * (DEEPEST - 2)} AS n FROM s",
    "deep calls": f"SELECT {'abs(' * (DEEPEST - 2)}x{')' * (DEEPEST - 2)} AS n FROM s",
    "deep NOT": f"SELECT k FROM s WHERE {'NOT ' * (DEEPEST - 2)}b",
    "deep CASE": f"SELECT {'CASE WHEN b THEN ' * 60}k{' END' * 60} AS n FROM s",
    "long OR": f"SELECT k FROM s WHERE {' OR '.join(f'k + {n} = 3' for n in range(DEEPEST - 10))}",
    "wide OR": f"SELECT k FROM s WHERE {balanced([f'x + {n} = 3' for n in range(150)])}",
    "wide AND": f"SELECT k FROM s WHERE {' AND '.join(f'x <> {n} + 0.5' for n in range(150))}",
    "many LIKE": f"SELECT k FROM s WHERE {' AND '.join(f't NOT LIKE {chr(39)}%{n}%b{chr(39)}' for n in range(50))}",
    "long IN": f"SELECT k FROM s WHERE k IN ({', '.join(map(str, range(2, 500)))})",
    "long NOT IN": f"SELECT k FROM s WHERE k NOT IN ({', '.join(map(str, range(2, 500)))})",
    "IN of an expression": f"SELECT k FROM s WHERE k + 1 IN ({', '.join(map(str, range(3, 500)))})",
    "texts put together": f"SELECT length(concat({', '.join(['t'] * 300)})) AS n FROM s WHERE length(t) < 50",
    "names": f"SELECT max(k) AS m, count(*) AS n FROM s [RANGE 2 SECONDS] HAVING {' + '.join(['m * n'] * 30)} > 0",
    "derived": f"SELECT sum(u) AS u FROM (SELECT {' + '.join(['k'] * 20)} AS u FROM s) [RANGE 2 SECONDS] AS j "
    f"WHERE {' AND '.join(f'u + {n} > 0' for n in range(10))}",
    "times moved": "SELECT at + INTERVAL '1' DAY AS a, d - INTERVAL '1' MONTH AS m, timestampadd(SECOND, k, at) AS s, "
    "timestampdiff(MINUTE, d, at) AS n FROM s WHERE at - INTERVAL '1' SECOND >= date_trunc('minute', at)",
    "times of a join": "SELECT a.k, b.at FROM s [RANGE 1 SECOND] AS a, s [RANGE 1 SECOND] AS b WHERE a.k = b.k "
    "AND b.at BETWEEN a.at - INTERVAL '400' MILLISECOND AND a.at + INTERVAL '1' SECOND",
    "times of windows": "SELECT date_format(window_end - INTERVAL '1' MICROSECOND, 'HH:mm:ss.SSS') AS last, "
    "max(unix_millis(at)) AS m, extract(MINUTE FROM date_trunc('minute', at)) AS n FROM s [RANGE 2 SECONDS] "
    "GROUP BY date_trunc('minute', at)",
    "regular expressions": "SELECT regexp_extract(t, '^([^:]*):(.*)$', 2) AS a, split_index(t, 'a', 1) AS c, "
    "regexp_replace(t, '[ab]+', '-', 'g') AS b FROM s WHERE t RLIKE '[^a]b?' OR NOT regexp_like(t, '.*a.*')",
    "selects": " UNION ALL ".join(f"SELECT k FROM s WHERE k {'>' if n % 2 else '='} {n % 7}" for n in range(12)),
    "five inputs": f"SELECT a.k FROM {JOINED} WHERE {TIES} AND {' AND '.join(f'{a}.x <= {b}.x' for a, b in PAIRS)}",
    "many ties": f"SELECT a.k FROM {JOINED} WHERE "
    + " AND ".join(f"{a}.{c} = {b}.{c}" for a, b in PAIRS for c in ("k", "x", "t", "b", "d")),
    **{f"like {n}": f"SELECT t FROM s WHERE t LIKE '{pattern}'" for n, pattern in enumerate(PATTERNS)},
    **{f"not like {n}": f"SELECT k, t NOT LIKE '{p}' AS l FROM s" for n, p in enumerate(PATTERNS[::7])},
}


def table() -> pa.Table:
    texts = [None, *TEXTS]
    rows = range(len(texts))
    return pa.table(
        {
            "k": pa.array([n % 5 if n % 11 else None for n in rows], pa.int64()),
            "x": pa.array([n / 2 if n % 7 else None for n in rows]),
            "t": pa.array(texts),
            "b": pa.array([n % 3 == 0 if n % 4 else None for n in rows]),
            "d": pa.array([n // 20 if n % 13 else None for n in rows], pa.date32()),
            "at": pa.array([BEGINNING_US + n * SECOND // 5 for n in rows], pa.timestamp("us", tz="UTC")),
        }
    )


SOME = {"groups only", "computed", "cases", "texts"}
STREAM = Stream("s", tuple(Column(name, Type(type_)) for name, type_ in SCHEMA.items()), "at")
CATALOG = {"s": STREAM}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("s", table())
        yield con


def test_accepted_queries_run_together(tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "queries").mkdir()
    pq.write_table(table(), tmp_path / "s" / "rows.parquet")
    chosen = {name.replace(" ", "_"): sql for name, sql in QUERIES.items() if name in SOME or "like" in name}
    stream = {"source": {"type": "files", "path": "./s", "format": "parquet"}, "schema": SCHEMA, "time": "at"}
    job = tmp_path / "job.yaml"
    job.write_text(yaml.safe_dump(yaml.safe_load(HEADER) | {"streams": {"s": stream}, "queries": chosen}))
    with start(job) as running:
        running.drain()
        found = {name: differences(answer(con, sql), running.results(name)) for name, sql in chosen.items()}
    assert {name: str(difference) for name, difference in found.items() if difference} == {}


def test_the_plan_of_every_accepted_query_runs(con: duckdb.DuckDBPyConnection) -> None:
    """As batches, which start in a moment; that streams give the same is the matter of other tests."""
    builder = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC")
    spark = builder.config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.createDataFrame(table()).cache()
    found = {
        name: differences(answer(con, sql), in_one_batch(spark, rows, sql))
        for name, sql in QUERIES.items()
        if "like" not in name
    }
    assert {name: str(difference) for name, difference in found.items() if difference} == {}


def answer(con: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    return expected(con, parse(sql, CATALOG), CATALOG)


def in_one_batch(spark: SparkSession, data: DataFrame, sql: str) -> pa.Table:
    """The answer of a query's own template, over tables instead of streams."""
    tables = []
    for pipeline in plan(parse(sql, CATALOG), CATALOG).pipelines:
        template = template_of(pipeline)
        schema = arrow_schema(table_columns(columns(template, column_types(template))))
        assigned = [{"_version": 1, **row} for row in assignment_rows(1, pipeline, template)]
        arrays = [pa.array([row.get(field.name) for row in assigned], field.type) for field in schema]
        assignments = spark.createDataFrame(pa.table(arrays, schema=schema))
        inputs = [_input(data, source.alias) for source in pipeline.sources]
        outputs = [F.col(name).alias(f"o{n}") for n, name in enumerate(log_columns(pipeline, template))]
        tables.append(build(template, inputs, assignments).select(*outputs).toArrow())
    return pa.concat_tables(tables)


def _input(data: DataFrame, alias: str) -> DataFrame:
    return data.select(
        F.col("at").alias("_event"),
        F.lit("s").alias(f"{alias}__stream"),
        F.unix_micros("at").alias(f"{alias}__us"),
        *(F.col(name).alias(input_column(alias, name)) for name in SCHEMA),
    )
