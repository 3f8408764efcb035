"""Decimals on both kinds of carriers, through every reader, and in results, with answers worked out by hand."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tests.decimal_cases import AGGREGATES, CASES, KNOWN, shown, table
from tests.spark.batches import answers, session
from tests.spark.folders import HEADER

from towpath.api.running import start
from towpath.arrow import as_decimals
from towpath.lang import parse
from towpath.plan import CarrierKinds
from towpath.results.render import json_rows

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "carriers", [CarrierKinds.COMPILED, pytest.param(CarrierKinds.UNIVERSAL, marks=pytest.mark.live)]
)
def test_cases(tmp_path: Path, carriers: CarrierKinds) -> None:
    windows = [a for a in AGGREGATES if carriers is CarrierKinds.COMPILED or "DISTINCT" not in a[0]]
    queries = [f"SELECT n, {expression} AS v FROM s" for expression, _ in CASES]
    queries += [f"SELECT {expression} AS v FROM s [RANGE 1 MINUTE]" for expression, _ in windows]
    found = [
        as_decimals(rows, [c.scale for c in parse(sql, KNOWN).columns])
        for sql, rows in zip(queries, answers(session(tmp_path), queries, KNOWN, {"s": table()}, carriers), strict=True)
    ]
    wrong = {}
    for (expression, values), rows in zip(CASES, found, strict=False):
        of_rows = [shown(row["v"]) for row in sorted(rows.to_pylist(), key=lambda row: row["n"])]
        wrong |= {} if of_rows == values else {expression: (of_rows, values)}
    for (expression, value), rows in zip(windows, found[len(CASES) :], strict=True):
        of_rows = [shown(v) for v in rows["v"].to_pylist()]
        wrong |= {} if of_rows == [value] else {expression: (of_rows, value)}
    assert wrong == {}


LINES = [
    {"k": 1, "price": 0.1, "at": "2026-01-01T00:00:01Z"},
    {"k": 1, "price": "0.2", "at": "2026-01-01T00:00:02Z"},
    {"k": 2, "price": -12.345, "at": "2026-01-01T00:00:03Z"},
    {"k": 2, "price": None, "at": "2026-01-01T00:00:04Z"},
    {"k": 3, "price": "1e9", "at": "2026-01-01T00:00:05Z"},
]
SCHEMA = {"k": "bigint", "price": "decimal(9,2)", "at": "timestamp"}


@pytest.mark.parametrize("carriers", [pytest.param("compiled", marks=pytest.mark.live), "universal"])
def test_a_job(tmp_path: Path, carriers: str) -> None:
    """Of the last row the price has too many digits: it is refused."""
    head = yaml.safe_load(HEADER)
    del head["queries_folder"]
    for name in ("json", "csv", "lone"):
        (tmp_path / name).mkdir()
    (tmp_path / "json" / "a.json").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    rows = "".join(f"{line['k']},{'' if line['price'] is None else line['price']},{line['at']}\n" for line in LINES)
    (tmp_path / "csv" / "a.csv").write_text(f"k,price,at\n{rows}")
    prices = pa.array([None if line["price"] is None else str(line["price"]) for line in LINES])
    keys, times = (pa.array([line[name] for line in LINES]) for name in ("k", "at"))
    pq.write_table(pa.table({"k": keys, "price": prices, "at": times}), tmp_path / "lone" / "a.parquet")
    streams = {
        name: {"source": {"type": "files", "path": f"./{name}", "format": format_}, "schema": SCHEMA, "time": "at"}
        | {"idle_after": 0}
        for name, format_ in (("json", "json"), ("csv", "csv"), ("lone", "parquet"))
    }
    streams["lone"]["schema"] = SCHEMA | {"other": "int"}  # read alone, by Spark's own reader
    pq.write_table(
        pa.table({"price": pa.array([Decimal("0.20"), Decimal("5.00")]), "tier": ["a", "b"]}), tmp_path / "t.parquet"
    )
    tiers = {
        "source": {"type": "file", "path": "./t.parquet", "format": "parquet"},
        "schema": {"price": "decimal(9,2)", "tier": "string"},
    }
    queries = {
        **{f"sum-{n}": f"SELECT k, sum(price) AS total FROM {n} [RANGE 1 MINUTE] GROUP BY k" for n in streams},
        **{f"filter-{n}": f"SELECT price, price * 1.5 AS more FROM {n} WHERE price > 0.1" for n in streams},
        "view": "SELECT max(v.total) + 1 AS most FROM (SELECT k, sum(price) AS total FROM json [RANGE 10 SECONDS] "
        "GROUP BY k) [RANGE 1 MINUTE] AS v",
        "table": "SELECT j.price, t.tier FROM json AS j JOIN tiers AS t ON j.price = t.price",
    }
    job = head | {"carriers": carriers, "streams": streams, "tables": {"tiers": tiers}, "queries": queries}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job, sort_keys=False))
    with start(tmp_path / "job.yaml") as running:
        running.drain()
        for name in streams:
            total = running.results(f"sum-{name}")
            assert total.schema.field("total").type == pa.decimal128(19, 2)
            assert sorted(json_rows(total), key=str) == [(1, "0.30"), (2, "-12.35")], name
            assert list(json_rows(running.results(f"filter-{name}"))) == [("0.20", "0.300")], name
        assert list(json_rows(running.results("view"))) == [("1.30",)]
        assert list(json_rows(running.results("table"))) == [("0.20", "a")]
        assert sorted((reject.streams, reject.line) for reject in running.rejected()) == [
            (("csv",), 6),
            (("json",), 5),
            (("lone",), 5),
        ]
