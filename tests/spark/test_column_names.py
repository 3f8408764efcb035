"""Columns may have any names: those of Spark's and of towpath's own columns, and those that need quotes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml
from tests.spark.folders import BEGINNING_US, HEADER, SECOND

from towpath.api.running import start

pytestmark = pytest.mark.spark

OWN = ("_stream", "_event", "_event_right", "_time", "_born", "_fragment", "_batch", "_version", "_probe", "_key")
OTHER = ("_value", "_us", "us", "i0_x", "x0", "g0", "a0", "s_i0", "w_range", "_metadata", "_corrupt_record", "link")
ODD = ("unit price", 'say "so"', "`tick`", "a.b", "naïve €", "日本", "select", "2nd", "#time", "it's", "%", "$x", "[x]")
NAMES = (*OWN, *OTHER, *ODD)
FORMATS = {"parquet": "result time", "csv": "_event at", "json": "link"}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def write(folder: Path, format_: str, time: str, rows: int) -> None:
    """Row n has n * 100 + (number of the column) in each column, and comes in second n."""
    names = [name for name in NAMES if name != time]
    columns = {name: [n * 100 + NAMES.index(name) for n in range(rows)] for name in names}
    seconds = [BEGINNING_US + n * SECOND for n in range(rows)]
    table = pa.table(columns | {time: pa.array(seconds, pa.timestamp("us", tz="UTC"))})
    if format_ == "parquet":
        pq.write_table(table, folder / "rows.parquet")
    elif format_ == "csv":
        pa.csv.write_csv(table.set_column(table.num_columns - 1, time, [_texts(table, time)]), folder / "rows.csv")
    else:
        lines = [row | {time: row[time].isoformat()} for row in table.to_pylist()]
        (folder / "rows.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _texts(table: pa.Table, time: str) -> list[str]:
    return [value.isoformat() for value in table[time].to_pylist()]


def stream(folder: Path, name: str, format_: str, time: str) -> dict[str, object]:
    (folder / name).mkdir()
    write(folder / name, format_, time, rows=3)
    schema = {column: "bigint" for column in NAMES if column != time} | {time: "timestamp"}
    source = {"type": "files", "path": f"./{name}", "format": format_}
    return {"source": source, "schema": schema, "time": time, "idle_after": 0}


def test_any_name_works_in_lone_streams_feeds_joins_links_and_results(tmp_path: Path) -> None:
    streams = {format_: stream(tmp_path, format_, format_, time) for format_, time in FORMATS.items()}
    streams |= {name: stream(tmp_path, name, "parquet", "at") for name in ("feed1", "feed2")}
    shown = [name for name in NAMES if name not in FORMATS.values()]
    changed = [*OWN, *ODD[:6]]  # so few that one carrier holds them beside the others
    items = ", ".join(f"{quoted(name)} AS {quoted(name)}" for name in shown)
    computed = ", ".join(f"{quoted(name)} + 0 AS {quoted(name)}" for name in changed)
    conditions = " AND ".join(f"{quoted(name)} > 99 AND {quoted(name)} < 200" for name in shown)
    grouped = ", ".join(quoted(name) for name in OWN + ODD)
    queries = {
        **{f"all.{name}": f"SELECT {items} FROM {name}" for name in streams},
        **{f"some.{name}": f"SELECT {computed} FROM {name} WHERE {conditions}" for name in ("parquet", "feed1")},
        "groups": f"SELECT {grouped}, count(*) AS n FROM feed1 [RANGE 1 SECOND] GROUP BY {grouped}",
    }
    sql = (
        "SELECT a.{0} AS {0}, sum(b.{1}) AS {1} FROM parquet [RANGE 1 SECOND] AS a, feed1 [RANGE 1 SECOND] AS b "
        "WHERE a.{0} = b.{0} AND a.{2} = b.{2} GROUP BY a.{0}"
    )
    cut = {"sql": sql.format(*map(quoted, ("_us", "unit price", "_stream"))), "fragments": "one_per_operator"}
    job = tmp_path / "job.yaml"
    (tmp_path / "queries").mkdir()
    head = yaml.safe_load(HEADER)
    job.write_text(yaml.safe_dump(head | {"streams": streams, "queries": queries | {"cut": cut}}, sort_keys=False))

    rows = [{name: n * 100 + NAMES.index(name) for name in shown} for n in range(3)]
    with start(job) as running:
        running.drain()
        for name in streams:
            assert running.results(f"all.{name}").to_pylist() == rows, name
        for name in ("parquet", "feed1"):
            assert running.results(f"some.{name}").to_pylist() == [{c: rows[1][c] for c in changed}], name
        found = running.results("groups").to_pylist()
        assert found == [{name: row[name] for name in OWN + ODD} | {"n": 1} for row in rows]
        assert running.results("cut").to_pylist() == [
            {name: row[name] for name in ("_us", "unit price")} for row in rows
        ]
