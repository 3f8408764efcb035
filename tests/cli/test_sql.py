"""`towpath sql`, as a statement and as a shell."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stores import make_store
from towpath.cli import main


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "job.store")


def out(*arguments: object, stdin: str | None = None) -> str:
    result = CliRunner().invoke(main, ["sql", *map(str, arguments)], input=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_statement(store: Path) -> None:
    assert out(store, "SELECT value FROM since ORDER BY 1 LIMIT 2") == "value\n    3\n    4\n"


@pytest.mark.parametrize("option", [["--json"], ["--format", "json"]])
def test_as_json_for_programs(store: Path, option: list[str]) -> None:
    statement = "SELECT value, sum(value) OVER () AS total, [1, 2] AS list, 1.5 AS half FROM gone ORDER BY 1 LIMIT 1"
    assert json.loads(out(store, statement, *option)) == {"value": 2, "total": 9, "list": [1, 2], "half": 1.5}


def test_as_csv(store: Path) -> None:
    assert out(store, "SELECT value, [value] AS list FROM gone ORDER BY 1", "--format", "csv") == (
        '"value","list"\n2,"[2]"\n3,"[3]"\n4,"[4]"\n'
    )


def test_into_a_file(store: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    out(store, "FROM since", "--format", "parquet", "--out", tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 4


def test_the_only_store_here_needs_no_name(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.parent)
    for words in (["SELECT 1 AS one"], ["job.store", "SELECT 1 AS one"], ["--store", "job.store", "SELECT 1 AS one"]):
        assert out(*words) == "one\n  1\n"
    assert CliRunner().invoke(main, ["sql", "job.store", "--store", "job.store", "SELECT 1"]).exit_code == 2


def test_statements_from_a_pipe(store: Path) -> None:
    assert out(store, stdin="SELECT 1 AS one;\nSELECT 2 AS two;\n") == "one\n  1\ntwo\n  2\n"


def test_lists_and_descriptions(store: Path) -> None:
    listed = out(store, "\\d")
    assert [line.split()[:2] for line in listed.splitlines()[1:3]] == [["all", "standing"], ["gone", "withdrawn"]]
    assert out(store, "\\d since") == "column  type\nvalue   BIGINT\ntext    VARCHAR\n"
    assert "double quotes" in out(store, "\\?")


def test_a_mistake_in_the_statement(store: Path) -> None:
    result = CliRunner().invoke(main, ["sql", str(store), "SELECT * FROM sinse"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'did you mean "since"?' in result.stderr
    result = CliRunner().invoke(main, ["sql", str(store), "SELECT * FROM sinse", "--json"])
    assert json.loads(result.stdout)["problems"][0]["hint"] == 'did you mean "since"?'


def test_words_without_quotes(store: Path) -> None:
    result = CliRunner().invoke(main, ["sql", str(store), "SELECT", "1"])
    assert result.exit_code == 2 and "put the statement in quotes" in result.stderr


def test_the_shell_goes_on_after_a_mistake_and_reads_several_lines(store: Path) -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from towpath.cli import main; main()", "sql", str(store)],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"TERM": "dumb"},
        text=True,
    )
    os.write(controller, b"\\d since\nSELEC 1;\nSELECT max(value) AS m\nFROM since;\n\\q\n")
    said, _ = process.communicate(timeout=60)
    os.close(controller)
    os.close(terminal)
    assert process.returncode == 0, said
    assert "BIGINT" in said and 'syntax error at or near "SELEC"' in said
    assert "m\n6" in said.replace(" ", "")
