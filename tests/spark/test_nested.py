"""Fields of structs through every reader and both kinds of carriers, with answers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tests.spark.folders import HEADER

from towpath.api.running import start

pytestmark = pytest.mark.spark

# Second, user, what else is in the row. The same rows as JSON and as Parquet.
ROWS: list[dict[str, Any]] = [
    {"user": {"id": 1, "name": {"first": "Ann"}}, "Preis (EUR)": 2.5, "meta": {"at": "2026-01-01T00:00:01Z"}},
    {"user": {"id": 2, "name": None}, "Preis (EUR)": 1.0, "meta": {"at": "2026-01-01T00:00:02Z"}},
    {"user": None, "Preis (EUR)": 7.0, "meta": {"at": "2026-01-01T00:00:03Z"}},
    {"user": {"id": 1, "name": {"first": "Bo"}}, "Preis (EUR)": 4.0, "meta": {"at": "2026-01-01T00:00:04Z"}},
    {"Preis (EUR)": 8.0, "meta": None},
]
STREAM = {
    "schema": {"user": {"id": "bigint", "name": {"first": "string"}}, "price": "double", "meta": {"at": "timestamp"}},
    "time": "meta.at",
    "idle_after": 0,
}
SOURCE = {"type": "files", "fields": {"price": "Preis (EUR)"}}
FORMATS = {"lone": "parquet", "first": "json", "second": "json", "third": "parquet"}
QUERIES = {
    "filter": "SELECT user.id, s.user.name.first, price FROM {} AS s WHERE user.id = 1 OR user.name.first IS NULL",
    "window": "SELECT user.id, sum(price) AS total FROM {} [RANGE 1 MINUTE] GROUP BY user.id",
}
ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    "filter": [(1, "Ann", 2.5), (2, None, 1.0), (None, None, 7.0), (1, "Bo", 4.0)],
    "window": [(1, 6.5), (2, 1.0), (None, 7.0)],
    # By user 1: two tuples of the first and two of the second; by user 2 one of each.
    "join": [(1, "Ann"), (1, "Ann"), (1, "Bo"), (1, "Bo"), (2, None)],
    "table": [(1, "gold"), (1, "gold")],
    "device-7": [(1,)],
}


def write(folder: Path, name: str, rows: list[dict[str, Any]], format_: str) -> None:
    (folder / name).mkdir()
    if format_ == "json":
        (folder / name / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), folder / name / "rows.parquet")


def written(folder: Path, carriers: str) -> Path:
    head = yaml.safe_load(HEADER)
    del head["queries_folder"]
    streams = {}
    for name, format_ in FORMATS.items():
        write(folder, name, ROWS, format_)
        streams[name] = STREAM | {"source": SOURCE | {"path": f"./{name}", "format": format_}}
    # Of another class, so that it is read by Spark's own reader.
    streams["lone"] = streams["lone"] | {"schema": STREAM["schema"] | {"other": "int"}}  # type: ignore[operator]
    devices = [{"device": {"no": no}, "at": "2026-01-01T00:00:01Z"} for no in (7, 8, 8)]
    write(folder, "devices", devices, "json")
    for no in (7, 8):
        source = {"type": "files", "path": "./devices", "format": "json", "where": {"device.no": no}}
        schema = {"device": {"no": "int"}, "at": "timestamp"}
        streams[f"d{no}"] = {"source": source, "schema": schema, "time": "at", "idle_after": 0}
    pq.write_table(pa.table({"of": [{"user": 1}, {"user": 5}], "rank": ["gold", "tin"]}), folder / "ranks.parquet")
    ranks = {
        "source": {"type": "file", "path": "./ranks.parquet", "format": "parquet"},
        "schema": {"of": {"user": "bigint"}, "rank": "string"},
    }
    queries = {f"{query}-{name}": sql.format(name) for name in FORMATS for query, sql in QUERIES.items()}
    queries["join"] = (
        "SELECT a.user.id, a.user.name.first FROM first [RANGE 1 MINUTE] AS a, second [RANGE 1 MINUTE] AS b "
        "WHERE a.user.id = b.user.id"
    )
    queries["table"] = "SELECT s.user.id, r.rank FROM third AS s JOIN ranks AS r ON s.user.id = r.of.user"
    queries["device-7"] = "SELECT count(device.no) AS n FROM d7 [RANGE 1 MINUTE]"
    job = head | {"carriers": carriers, "streams": streams, "tables": {"ranks": ranks}, "queries": queries}
    (folder / "job.yaml").write_text(yaml.safe_dump(job, sort_keys=False))
    return folder / "job.yaml"


@pytest.mark.parametrize("carriers", ["compiled", pytest.param("universal", marks=pytest.mark.live)])
def test_fields_of_structs(tmp_path: Path, carriers: str) -> None:
    with start(written(tmp_path, carriers)) as running:
        running.drain()
        for name in running.job.queries:
            rows = [tuple(row.values()) for row in running.results(name).to_pylist()]
            expected = ANSWERS[name if name in ANSWERS else name.split("-")[0]]
            assert sorted(rows, key=str) == sorted(expected, key=str), name
        refused = sorted((reject.streams, reject.line, reject.reason) for reject in running.rejected())
        reason = "it has no event time in the column meta.at"
        assert refused == [((name,), 5, reason) for name in sorted(FORMATS)]
