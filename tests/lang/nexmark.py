"""The queries of Nexmark in data/nexmark.yaml, and docs/nexmark.md, which is made of them.

`python -m tests.lang.nexmark` writes the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import yaml

from towpath.arrow import ARROW
from towpath.lang import parse, to_sql
from towpath.schema import Catalog, Column, Stream, Type, reference_table

from .cases import DATA

PAGE = Path(__file__).parents[2] / "docs" / "nexmark.md"
COLUMNS = {
    "person": "id bigint, name string, emailAddress string, creditCard string, city string, state string",
    "auction": "id bigint, itemName string, description string, initialBid bigint, reserve bigint, expires timestamp, "
    "seller bigint, category bigint",
    "bid": "auction bigint, bidder bigint, price bigint, channel string, url string",
}
SIDE_INPUT = {"key": Type.BIGINT, "value": Type.STRING}
FIRST = datetime(2026, 1, 31, 23, 58)  # so that there are two days


@dataclass(frozen=True)
class NexmarkQuery:
    name: str
    asks: str
    flink: str
    refusal: str  # what is told of Flink's text; empty where it passes
    own: str  # the query in towpath's SQL; empty where Flink's text passes, or nothing does
    missing: str  # empty where the query runs
    plain: str
    state: str
    differs: str

    @property
    def sql(self) -> str:
        return self.own or self.flink


def queries() -> list[NexmarkQuery]:
    return [
        NexmarkQuery(
            *(q["name"], q["asks"], q["flink"]["sql"], q["flink"].get("missing", "")),
            *(q.get(key, "") for key in ("own", "missing", "plain", "state", "differs")),
        )
        for q in yaml.safe_load((DATA / "nexmark.yaml").read_text())
    ]


def catalog() -> Catalog:
    found: dict[str, Stream] = {}
    for name, text in COLUMNS.items():
        columns = [part.split() for part in f"{text}, dateTime timestamp, extra string".split(", ")]
        found[name] = Stream(name, tuple(Column(c, Type(kind)) for c, kind in columns), "dateTime")
    side = tuple(Column(name, type_) for name, type_ in SIDE_INPUT.items())
    return found | {"side_input": reference_table("side_input", side)}


def database(seed: int = 1, number: int = 600) -> duckdb.DuckDBPyConnection:
    """Four minutes around midnight; every tenth row lies on a full second."""
    random = Random(seed)
    con = duckdb.connect()
    keys = list(range(40))  # of 50
    side = {"key": pa.array(keys, ARROW[Type.BIGINT]), "value": [f"value {key}" for key in keys]}
    con.register("side_input", pa.table(side))
    for name, stream in catalog().items():
        if stream.is_table:
            continue
        rows = [_row(stream, n, random) for n in range(number if name == "bid" else number // 6)]
        arrays = [pa.array([row[c.name] for row in rows], ARROW[c.type]) for c in stream.columns]
        con.register(name, pa.table(arrays, names=[c.name for c in stream.columns]))
    return con


def _row(stream: Stream, number: int, random: Random) -> dict[str, Any]:
    at = FIRST + timedelta(microseconds=random.randrange(240_000_000))
    at = at.replace(microsecond=0) if number % 10 == 0 else at
    special = {
        "id": number,
        "dateTime": at,
        "expires": at + timedelta(seconds=20),
        "price": round(10 ** random.uniform(2, 8)),
        "channel": random.choice(["Apple", "Google", "web"]),
        "url": f"https://shop.example/a/b/c?n={number}",
    }
    return {
        c.name: special.get(c.name, random.randrange(50) if c.type is Type.BIGINT else f"{c.name} {number}")
        for c in stream.columns
    }


def page() -> str:
    known = queries()
    runs = [q for q in known if not q.missing]
    passed = [q for q in known if not q.refusal]
    text = [
        "# The queries of Nexmark",
        "",
        "Nexmark is a benchmark of streaming systems: persons open auctions, and bid. Its streams are `person`,",
        "`auction` and `bid`, each with its event time in `dateTime`, and `side_input` is a table. "
        f"Of its 23 queries {len(runs)} run,",
        f"{len(passed)} of them as they are written for Flink.",
        "This page is made of tests/lang/data/nexmark.yaml; a test evaluates every query that runs, compares it with",
        "the same in DuckDB's SQL, and checks the reason of every other one.",
        "",
        "| query | asks for | runs | in Flink's spelling |",
        "|---|---|---|---|",
        *(f"| [{q.name}](#{q.name}) | {q.asks} | {_runs(q)} | {'no' if q.refusal else 'yes'} |" for q in known),
        "",
    ]
    for q in known:
        text += [f"## {q.name}", "", q.asks, ""]
        if q.missing:
            text += [f"Not yet: {q.missing}.", ""]
            continue
        text += [*(f"    {line}" for line in (q.own or to_sql(parse(q.flink, catalog()))).splitlines()), ""]
        text += [f"State: {q.state}. {q.differs}".rstrip(), ""]
    return "\n".join(text)


def _runs(query: NexmarkQuery) -> str:
    return f"not yet: {query.missing}" if query.missing else "yes"


if __name__ == "__main__":
    PAGE.write_text(page())
