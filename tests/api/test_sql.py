"""SQL over results: the rows that `Reader.read` gives, read only, and no more of them than a statement needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from results.logs import Row, write_batch
from stores import SECOND, make_store
from towpath import Reader
from towpath.api.sql import Column, Sql
from towpath.control.journal.journal import Journal
from towpath.control.state.history import Entry, EventKind
from towpath.control.state.records import FragmentRecord, PartRecord, QueryRecord
from towpath.errors import QueryError, StoreError
from towpath.plan.serial import PipelineText
from towpath.results import Part, compact
from towpath.store.layout import Store

SINCE = [3, 4, 5, 6]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "job's.store")


def answer(store: Path, statement: str) -> list[dict[str, Any]]:
    with Sql(store) as sql:
        (table,) = sql.run(statement)
        return table.to_pylist()


def stands(store: Path, name: str, *columns: str) -> None:
    """One more query over the same fragment."""
    journal = Journal(Store(store).journal)
    part = PartRecord(99, 0, 0, 1, tuple((c, "v") for c in columns), False, True, None, None, done=False)
    journal.save([QueryRecord(99, name, "SELECT", True, series=99), part])
    journal.close()


@pytest.mark.parametrize("name", ["all", "since", "gone", "new", "never", "replaced"])
def test_a_query_is_a_table_with_the_rows_that_results_shows(store: Path, name: str) -> None:
    shown = Reader(store).read(name)
    rows = answer(store, f'SELECT * FROM "{name}" ORDER BY value')
    assert rows == shown.to_pylist()


def test_results_are_joined_and_counted(store: Path) -> None:
    joined = 'SELECT count(*) AS n, sum(a.value) AS total FROM "all" AS a JOIN gone USING (value)'
    assert answer(store, joined) == [{"n": 3, "total": 2 + 3 + 4}]
    nested = 'WITH big AS (SELECT * FROM "all" WHERE value > 4) FROM big WHERE value IN (SELECT value FROM since)'
    assert sorted(row["value"] for row in answer(store, nested)) == [5, 6]


def test_a_name_is_found_however_it_is_written(store: Path) -> None:
    stands(store, "High-Bids", "v")
    assert answer(store, 'SELECT count(*) AS n FROM "high-bids"') == [{"n": 6}]
    assert answer(store, "SELECT count(*) AS n FROM SINCE") == [{"n": 4}]


def test_columns_of_one_name_are_told_apart(store: Path) -> None:
    stands(store, "twice", "v", "V", "v_1", "v")
    assert list(answer(store, "FROM twice")[0]) == ["v", "V_1", "v_1_1", "v_2"]


def test_what_comes_later_is_seen_by_the_next_statement(store: Path) -> None:
    with Sql(store) as sql:
        (before,) = sql.run("SELECT max(value) AS m FROM since")
        write_batch(Store(store).results("c0"), 2, [Row(1, 7 * SECOND, 7, born=7 * SECOND)])
        (after,) = sql.run("SELECT max(value) AS m FROM since")
    assert (before.to_pylist(), after.to_pylist()) == ([{"m": 6}], [{"m": 7}])


def test_files_that_are_merged_meanwhile_are_found_in_the_merged_one(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Store(store).results("c0")
    for number in (2, 3):  # the newest two are never merged
        write_batch(log, number, [])
    with Sql(store) as sql:
        show = sql._show

        def show_and_merge(name: str, parts: list[Part]) -> tuple[Path, ...]:
            files = show(name, parts)
            compact(log, min_batches=2)
            return files

        monkeypatch.setattr(sql, "_show", show_and_merge)
        (found,) = sql.run("SELECT value FROM since ORDER BY value")
    assert not (log / "batch=0").exists()
    assert found.column("value").to_pylist() == SINCE


def test_what_a_statement_leaves_out_is_not_read(store: Path) -> None:
    plan = str(answer(store, "EXPLAIN ANALYZE SELECT * FROM since WHERE value = 3"))
    assert "Row Groups Scanned: 1 / 4" in plan


def test_a_table_has_the_queries_and_one_the_history(store: Path) -> None:
    journal = Journal(Store(store).journal, now_us=lambda: 5 * SECOND)
    journal.save([Entry(EventKind.SUBMITTED, "query all came", "all")])
    journal.close()
    rows = answer(
        store, "SELECT name, state, epoch(answers_from) AS s FROM towpath_queries WHERE name IN ('all', 'since')"
    )
    assert rows == [{"name": "all", "state": "standing", "s": None}, {"name": "since", "state": "standing", "s": 3.0}]
    assert answer(store, "SELECT kind, query, epoch(happened) AS s FROM towpath_history") == [
        {"kind": str(EventKind.SUBMITTED), "query": "all", "s": 5.0}
    ]


def test_columns_with_their_types(store: Path, tmp_path: Path) -> None:
    with Sql(store) as sql:
        assert sql.columns("since") == [Column("value", "BIGINT"), Column("text", "VARCHAR")]
    empty = tmp_path / "empty"
    journal = Journal(Store(empty).journal)
    journal.save([FragmentRecord(1, "signature", "c0", PipelineText("shape", "[]"), 0, 0)])
    journal.close()
    stands(empty, "q", "v")
    with Sql(empty) as sql:
        assert sql.columns("q") == [Column("v", "not known before the first row")]
    assert answer(empty, "SELECT sum(v) AS s FROM q WHERE v > 3") == [{"s": None}]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM sinse", r'sinse does not exist!\n    LINE 1: .*\n +\^+\n    -> did you mean "since"\?'),
        ("SELECT * FROM nothing_like_it", r"\\d lists the queries"),
        ("SELECT valu FROM since", r'Candidate bindings: "value"'),
        ("SELEC 1", r'syntax error at or near "SELEC"\n    LINE 1: SELEC 1\n            \^'),
        ("SELECT 'x", "unterminated string"),
        ("SELECT * FROM high-bids", r'-> such a name stands in double quotes: "high-bids"'),
        ("SELECT 1; DROP VIEW since", "DROP is not possible: results are read only"),
        ("CREATE TABLE t AS SELECT 1", "CREATE is not possible"),
        ("COPY since TO 'x.csv'", "COPY is not possible"),
        ("ATTACH 'x.db'", "ATTACH is not possible"),
        ("SET threads = 100", "SET is not possible"),
        ("INSTALL spatial", "is not possible"),
        ("SELECT * FROM '/etc/passwd.csv'", "Cannot access file"),
        ("SELECT * FROM read_text('/etc/hostname')", "Cannot access file"),
    ],
)
def test_mistakes_are_reported_and_nothing_else_is_read_or_written(store: Path, statement: str, said: str) -> None:
    stands(store, "high-bids", "v")
    with pytest.raises(QueryError, match=said):
        answer(store, statement)


def test_nothing_of_several_statements_runs_if_one_is_refused(store: Path) -> None:
    with Sql(store) as sql, pytest.raises(QueryError, match="COPY"):
        next(sql.run("SELECT 1; COPY since TO 'x.csv'"))


def test_a_damaged_file_is_reported_with_its_name(store: Path) -> None:
    next(Store(store).results("c0").glob("batch=0/part-*.parquet")).write_bytes(b"no parquet")
    with pytest.raises(QueryError, match="part-0"):
        answer(store, "SELECT * FROM since")


def test_a_folder_that_is_no_store_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no job here yet"):
        Sql(tmp_path)
