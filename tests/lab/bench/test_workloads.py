from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from towpath.lab.bench.feeder import write
from towpath.lab.bench.workloads import KINDS, SCHEMA, STREAMS, rows, streams
from towpath.lang import parse


@pytest.mark.parametrize("kind", KINDS)
def test_every_query_is_one_and_queries_differ(kind: str, tmp_path: Path) -> None:
    catalog = {name: definition.stream for name, definition in streams(tmp_path).items()}
    texts = [KINDS[kind].sql(n) for n in range(200)]
    assert len(set(texts)) == 200
    assert texts == [KINDS[kind].sql(n) for n in range(200)]
    for n, sql in enumerate(texts):
        parse(sql, catalog, f"q{n}")


def test_rows_are_the_same_for_a_seed_and_spread_over_their_span() -> None:
    made = rows(7, 1_000_000, 500_000, 100)
    assert made.equals(rows(7, 1_000_000, 500_000, 100))
    assert not made.equals(rows(8, 1_000_000, 500_000, 100))
    times = made.column("at").cast("int64")
    assert (pc.min(times).as_py(), pc.max(times).as_py()) == (1_000_000, 1_495_000)
    assert made.schema == SCHEMA


def test_the_streams_of_the_joins_share_one_folder(tmp_path: Path) -> None:
    found = [s for name, s in streams(tmp_path).items() if name != "trades"]
    assert len(found) == STREAMS
    assert {s.source.part for s in found} == {("stream", str(n)) for n in range(STREAMS)}  # type: ignore[union-attr]
    assert len({s.stream.schema_class for s in found}) == 1


def test_a_file_appears_in_one_step(tmp_path: Path) -> None:
    write(tmp_path, "000", rows(0, 0, 1_000_000, 10))
    assert [p.name for p in tmp_path.iterdir()] == ["000.parquet"]
