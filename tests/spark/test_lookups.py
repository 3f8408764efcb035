"""Tuples that look rows up in reference tables, in both kinds of carriers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.batches import answers, session

from towpath.arrow import ARROW, arrow_schema
from towpath.lab.testing.queries import random_shape_over_tables
from towpath.lab.testing.recording import random_recording, with_tables
from towpath.lab.testing.workload import database_of
from towpath.lang import parse
from towpath.plan import CarrierKinds
from towpath.plan.cut import plan
from towpath.schema import Column, Stream, Type, reference_table
from towpath.verify import differences, expected

pytestmark = pytest.mark.spark

SECOND = 1_000_000
KINDS = pytest.mark.parametrize("carriers", [CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL])


def relation(columns: str, *rows: tuple[object, ...]) -> pa.Table:
    types = {part.split()[0]: Type(part.split()[1]) for part in columns.split(", ")}
    values = zip(*rows, strict=True) if rows else ((),) * len(types)
    return pa.table({n: pa.array(v, ARROW[t]) for (n, t), v in zip(types.items(), values, strict=True)})


def columns_of(rows: pa.Table) -> tuple[Column, ...]:
    types = {arrow: type_ for type_, arrow in ARROW.items()}
    return tuple(Column(f.name, types[f.type]) for f in rows.schema)


NAN = float("nan")
TABLES = {
    "bid": relation(
        "auction bigint, price double, channel string, day date, at timestamp",
        (11, 1.0, "web", 0, 1 * SECOND),
        (12, -0.0, "app", 1, 2 * SECOND),
        (13, NAN, "Web", None, 3 * SECOND),
        (None, 2.0, None, 0, 4 * SECOND),
        (21, 4.0, "web", 0, 12 * SECOND),
    ),
    "seller": relation("id bigint, name string, at timestamp", (11, "Ann", 2 * SECOND), (12, "Bob", 3 * SECOND)),
    "side": relation("key int, value string", (1, "one"), (2, "two"), (2, "zwei"), (None, "none"), (7, "seven")),
    "cents": relation("price double, n int", (0.0, 0), (NAN, -1), (4.0, 400)),
    "region": relation("name string, side bigint, since timestamp, day date", ("web", 2, SECOND, 0), ("app", 9, 0, 1)),
    "empty": relation("key bigint, value string"),
}
CATALOG = {name: Stream(name, columns_of(TABLES[name]), "at") for name in ("bid", "seller")} | {
    name: reference_table(name, columns_of(rows)) for name, rows in TABLES.items() if name not in ("bid", "seller")
}
# Worked out by hand.
BY_HAND = {
    "SELECT b.auction, t.value FROM bid AS b JOIN side AS t ON b.auction % 10 = t.key": [
        (11, "one"),
        (12, "two"),
        (12, "zwei"),
        (21, "one"),
    ],
    "SELECT b.auction, t.value FROM bid AS b LEFT JOIN side AS t ON b.auction % 10 = t.key": [
        (11, "one"),
        (12, "two"),
        (12, "zwei"),
        (13, None),
        (21, "one"),
        (None, None),
    ],
    "SELECT b.auction FROM side AS t, bid AS b WHERE t.key = b.auction % 10 AND t.value <> 'two' AND b.price < 3": [
        (11,),
        (12,),
    ],
    "SELECT b.auction, c.n FROM bid AS b JOIN cents AS c ON b.price = c.price": [(12, 0), (13, -1), (21, 400)],
    "SELECT b.auction, r.side FROM bid AS b JOIN region AS r ON b.channel = r.name AND b.day = r.day": [
        (11, 2),
        (12, 9),
        (21, 2),
    ],
    "SELECT b.auction FROM bid AS b JOIN region AS r ON b.at = r.since": [(11,)],
    # A table that is looked up by what another one has.
    "SELECT b.auction, t.value FROM bid AS b, region AS r, side AS t WHERE r.name = b.channel AND t.key = r.side": [
        (11, "two"),
        (11, "zwei"),
        (21, "two"),
        (21, "zwei"),
    ],
    "SELECT b.auction, t.value, u.value AS other FROM bid AS b JOIN side AS t ON b.auction % 10 = t.key "
    "JOIN side AS u ON b.auction - 5 = u.key": [(12, "two", "seven"), (12, "zwei", "seven")],
    "SELECT b.auction FROM bid AS b JOIN empty AS t ON b.auction = t.key": [],
    "SELECT b.auction, t.value FROM bid AS b LEFT JOIN empty AS t ON b.auction = t.key WHERE b.auction > 12": [
        (13, None),
        (21, None),
    ],
    "SELECT t.value, count(*) AS n, sum(b.price) AS s FROM bid [RANGE 10 SECONDS] AS b "
    "JOIN side AS t ON b.auction % 10 = t.key GROUP BY t.value HAVING t.value <> 'zwei'": [
        ("one", 1, 1.0),
        ("one", 1, 4.0),
        ("two", 1, 0.0),
    ],
    "SELECT s.name, t.value FROM bid [RANGE 5 SECONDS] AS b, seller [RANGE 5 SECONDS] AS s, side AS t "
    "WHERE b.auction = s.id AND s.id % 10 = t.key": [("Ann", "one"), ("Bob", "two"), ("Bob", "zwei")],
    # The streams are tied by the table alone.
    "SELECT s.name FROM bid [RANGE 5 SECONDS] AS b, seller [RANGE 5 SECONDS] AS s, region AS r "
    "WHERE b.channel = r.name AND r.side + 9 = s.id AND b.auction = s.id": [("Ann",)],
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield session(tmp_path_factory.mktemp("spark"))


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@KINDS
def test_what_tuples_find(spark: SparkSession, carriers: CarrierKinds) -> None:
    found = answers(spark, list(BY_HAND), CATALOG, TABLES, carriers)
    for (sql, wanted), answer in zip(BY_HAND.items(), found, strict=True):
        assert rows(answer) == sorted(wanted, key=repr), sql


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
@KINDS
def test_any_query_over_tables(spark: SparkSession, carriers: CarrierKinds, seed: int) -> None:
    rng = Random(seed)
    recording = with_tables(rng, random_recording(rng))
    tables = {name: known for name, known in recording.known.items() if known.is_table}
    shape = partial(random_shape_over_tables, rng, recording.catalog, tables)
    queries = [shape().text(constants=n, twist=n % 4) for n in range(10)]
    con = database_of(recording)
    content = {
        name: con.table(name).to_arrow_table().cast(arrow_schema({c.name: c.type for c in known.columns}))
        for name, known in recording.known.items()  # as it is in files, where some texts are NULL
    }
    for sql, answer in zip(queries, answers(spark, queries, recording.known, content, carriers), strict=True):
        difference = differences(expected(con, parse(sql, recording.known), recording.known), answer)
        assert difference is None, f"{sql}\n{difference}"


def test_equal_queries_are_one(spark: SparkSession) -> None:
    left = "SELECT b.price FROM bid b JOIN side t ON b.auction + 1 = t.key WHERE t.value > 'a'"
    right = "SELECT x.price FROM side y, bid x WHERE 'a' < y.value AND y.key = 1 + x.auction"
    other = "SELECT b.price FROM bid b LEFT JOIN side t ON b.auction + 1 = t.key WHERE t.value > 'a'"
    signatures = [plan(parse(sql, CATALOG), CATALOG).pipelines[0].signature for sql in (left, right, other)]
    assert signatures[0] == signatures[1] != signatures[2]
