"""The commands that speak to a service, against one whose job is played."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.fakes import FakeVerbs, service
from towpath.cli import main
from towpath.control.journal.journal import Journal
from towpath.control.state.history import Entry, EventKind
from towpath.service.messages import Drain, Migrate, Submit, WayStatus, Withdraw
from towpath.service.service_file import read
from towpath.store.layout import Store


@pytest.fixture
def verbs() -> FakeVerbs:
    return FakeVerbs()


@pytest.fixture
def store(tmp_path: Path, verbs: FakeVerbs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder has one job, which runs."""
    monkeypatch.chdir(tmp_path)
    with service(tmp_path / "job.store", verbs):
        yield tmp_path / "job.store"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_status(store: Path) -> None:
    shown = run("status").stdout
    assert "/job.store: 1 query, 200 rows/s in" in shown
    assert all(word in shown for word in ("left", "embedded", "filter", "1970-01-01 00:00:01", "warming", "asked for"))
    status = json.loads(run("status", store, "--json").stdout)
    assert (status["queries"], [node["name"] for node in status["nodes"]]) == (1, ["left", "right"])


def test_what_flows_between_nodes_is_shown_with_how_far_they_are_apart(store: Path, verbs: FakeVerbs) -> None:
    assert "latency" not in run("status").stdout
    verbs.ways = [WayStatus("left", "right", 0.0204, "measured", 12_345.6, 3, None)]
    assert "left right 20.4 ms measured 3 12,346 -" in " ".join(run("status").stdout.replace("│", " ").split())
    assert json.loads(run("status", "--json").stdout)["ways"][0]["latency_s"] == 0.0204


def test_what_fails_is_shown(store: Path, verbs: FakeVerbs) -> None:
    verbs.troubles, verbs.aside = ["the policy: KeyError: 'a'"], {"hot": "a fault"}
    shown = run("status").stdout
    assert "set aside: hot: a fault" in shown and "fails, and is tried again: the policy: KeyError: 'a'" in shown


def test_the_queries(store: Path) -> None:
    assert "1 query\n" in run("status", "--queries").stdout
    assert json.loads(run("status", "--queries", "--json").stdout)[0]["nodes"] == ["left"]


def test_status_of_the_costs(store: Path) -> None:
    shown = run("status", "--queries", "--cost").stdout
    assert all(text in shown for text in ("hot", "12.5", "25.0%", "100.0", "1 query"))
    assert json.loads(run("status", "--queries", "--cost", "--json").stdout)[0]["rows_per_trigger"] == 12.5
    assert "add --queries" in run("status", "--cost").output


def test_submit_by_name(store: Path, verbs: FakeVerbs) -> None:
    result = run("submit", "q", "SELECT 1", "--node", "left", "--sink", "type=parquet", "--sink", "path=out=1")
    assert result.stdout == "q runs on left (fragment 7); its first micro-batches decide from when on it answers\n"
    settings = {"from": "now", "node": "left", "sink": {"type": "parquet", "path": "out=1"}, "sql": "SELECT 1"}
    assert verbs.asked == [Submit({"q": settings}, str(Path.cwd()))]


def test_submit_files(store: Path, verbs: FakeVerbs) -> None:
    for name in ("a", "b"):
        Path(f"{name}.sql").write_text(f"SELECT {name}")
    assert run("submit", "a.sql", "b.sql", "--from", "beginning").exit_code == 0
    (asked,) = verbs.asked
    assert isinstance(asked, Submit)
    assert {n: (q["sql"], q["from"]) for n, q in asked.queries.items()} == {
        "a": ("SELECT a", "beginning"),
        "b": ("SELECT b", "beginning"),
    }


def test_submit_from_stdin(store: Path, verbs: FakeVerbs) -> None:
    CliRunner().invoke(main, ["submit", "q", "-"], input="SELECT 2")
    assert isinstance(verbs.asked[0], Submit) and verbs.asked[0].queries["q"]["sql"] == "SELECT 2"


def test_withdraw(store: Path, verbs: FakeVerbs) -> None:
    assert run("withdraw", "a", "b").stdout == "withdrawn: a, b\n"
    assert verbs.asked == [Withdraw(["a", "b"])]


def test_migrate(store: Path, verbs: FakeVerbs) -> None:
    result = run("migrate", "hot", "--to", "right")
    assert result.stdout == "fragment 7 (hot) from left to right: warming\n"
    assert verbs.asked == [Migrate("hot", "right")]


def test_migrate_to_another_kind_of_carrier(store: Path, verbs: FakeVerbs) -> None:
    assert run("migrate", "hot", "--carrier", "universal").exit_code == 0
    assert verbs.asked == [Migrate("hot", None, "universal")]


def test_migrate_and_wait_prints_the_steps(store: Path) -> None:
    result = run("migrate", "7", "--to", "right", "--wait", "--json")
    assert json.loads(result.stdout)[0]["step"] == "done"
    steps = [line.split(": ")[-1] for line in result.stderr.splitlines()]
    assert steps == ["it is warming", "it is fenced", "it is draining", "it is done"]


def test_drain_and_wait(store: Path, verbs: FakeVerbs) -> None:
    assert run("drain", "left", "--wait").stdout == "node left is drained (1 fragment)\n"
    assert run("drain", "left", "--undo").stdout == "node left is open (1 fragment)\n"
    assert verbs.asked == [Drain("left"), Drain("left", undo=True)]


def test_waiting_has_an_end(store: Path) -> None:
    result = run("drain", "left", "--wait", "--timeout", 0)
    assert (result.exit_code, result.stdout) == (1, "node left is draining (1 fragment)\n")
    assert "not done within 0 seconds; it goes on" in result.stderr


def test_top_looks_again_and_again_until_the_service_ends(store: Path, verbs: FakeVerbs) -> None:
    verbs.looks = 2
    result = run("top", "--every", "0.1")
    assert result.exit_code == 1
    first, second, end = result.stderr.splitlines()
    assert first == second and first.startswith("/job.store: 1 query, 200 rows/s in")
    assert end == "the job ends"


def test_through_a_tunnel(store: Path, tmp_path: Path) -> None:
    place = read(Store(store).service)
    assert place is not None
    (tmp_path / "token").write_text(f"{place.token}\n")
    assert run("status", "--address", place.address, "--token-file", "token").exit_code == 0


def test_a_token_file_with_more_than_the_token_is_refused_without_showing_it(store: Path, tmp_path: Path) -> None:
    (tmp_path / "service.json").write_text('{"token": "secret"}')
    done = run("status", "--address", "http://127.0.0.1:1", "--token-file", "service.json")
    assert done.exit_code == 1 and "service.json: expected a file with the token, one word" in done.output
    assert "secret" not in done.output


def test_the_job_may_stand_in_front(store: Path, tmp_path: Path) -> None:
    """Where a job file or a store of that name is; else the word is the name of a query."""
    (tmp_path / "shop.yaml").write_text("store: ./job.store\nstreams: {clock: {source: {type: rate, rate: 1}}}\n")
    for job in ("shop.yaml", "job.store"):
        if job == "job.store":
            (store / "journal.sqlite").touch()
        done = run("submit", job, "fast", "SELECT value FROM clock WHERE value > 1")
        assert done.exit_code == 0 and done.output.startswith("fast runs on"), done.output
        assert run("withdraw", job, "fast").exit_code == 0
    assert run("submit", "shop.yml", "SELECT value FROM clock").output.startswith("shop.yml runs on")
    twice = run("submit", "shop.yaml", "fast", "SELECT value FROM clock", "--store", "job.store")
    assert twice.exit_code == 2 and "name the job once: as the first word (shop.yaml) or by an option" in twice.output
    nameless = run("submit", "shop.yaml", "SELECT value FROM clock")
    assert nameless.exit_code == 2 and "got SQL alone: say what the query is called" in nameless.output


MISTAKES = [
    (["submit", "bad", "SELECT * FROM clok"], 1, "         ^^^^\n    -> did you mean clock?"),
    (["submit", "q"], 2, "expected NAME and SQL, or files whose names end in .sql"),
    (["submit", "a", "b", "c"], 2, "expected NAME and SQL"),
    (["submit", "missing.sql"], 1, "missing.sql: expected a file with SQL"),
    (["submit", "q", "SELECT 1", "--sink", "parquet"], 2, "expected KEY=VALUE, got 'parquet'"),
    (["migrate", "hot"], 2, "say where to: --to NODE"),
    (["migrate", "hot", "--to", "busy"], 1, "node busy is being drained"),
    (["drain", "busy"], 1, "no node other than busy takes queries"),
    (["drain", "left", "--undo", "--wait"], 2, "--undo has nothing to --wait for"),
    (["status", "job.store", "--store", "job.store"], 2, "name the job once"),
    (["status", "nothing.yaml"], 1, "nothing.yaml: expected a job file or the store of a job, and there is nothing"),
    (["status", "--store", "elsewhere"], 1, "no service runs on this store\n    -> `towpath up JOB` starts one"),
    (["status", "--address", "http://127.0.0.1:1"], 2, "--address needs --token-file"),
    (["status", "--address", "http://127.0.0.1:1", "--token-file", "no"], 1, "no: expected a file with the token"),
    (["history", "--since", "soon"], 2, 'expected a duration, got "soon"'),
    (["up", "nothing.yaml", "--bind", "0.0.0.0"], 1, "expected an address of this machine only"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistakes_are_reported(store: Path, arguments: list[str], code: int, said: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_one_job_here_is_enough_and_two_are_too_many(store: Path, tmp_path: Path) -> None:
    with service(tmp_path / "other.store", FakeVerbs()):
        message = run("status").stderr
    assert "found the stores of several jobs (job.store, other.store)" in message
    assert run("status").exit_code == 0


def test_no_job_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("status", "history"):
        assert "expected one job here, found no store of a job" in run(command).stderr


@pytest.fixture
def store_with_history(tmp_path: Path) -> Path:
    """A store with a history, whose job does not run."""
    journal = Journal(Store(tmp_path).journal)
    journal.save(
        [
            Entry(EventKind.SUBMITTED, "query hot enters", query="hot", nodes=("left",)),
            Entry(EventKind.NODE_LOST, "node right is lost", nodes=("right",)),
        ]
    )
    journal.close()
    return tmp_path


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ([], ["query hot enters", "node right is lost"]),
        (["--query", "hot"], ["query hot enters"]),
        (["--node", "right"], ["node right is lost"]),
        (["--limit", "1"], ["node right is lost"]),
        (["--since", "10m"], ["query hot enters", "node right is lost"]),
        (["--query", "cold"], []),
    ],
)
def test_history_without_a_service(store_with_history: Path, options: list[str], texts: list[str]) -> None:
    found = json.loads(run("history", "--store", store_with_history, "--json", *options).stdout)
    assert [entry["text"] for entry in found] == texts
    assert all(abs(entry["at_us"] / 1e6 - time.time()) < 3600 for entry in found)


def test_history_as_a_table(store_with_history: Path) -> None:
    shown = run("history", store_with_history).stdout
    assert "node lost" in shown and "2 entries" in shown


def test_the_job_may_stand_in_front_of_what_is_moved_and_drained(store: Path, verbs: FakeVerbs) -> None:
    Journal(Store(store).journal).close()
    assert run("migrate", "job.store", "hot", "--to", "right").exit_code == 0
    assert run("drain", "job.store", "left").exit_code == 0
    assert verbs.asked == [Migrate("hot", "right"), Drain("left")]
    twice = run("drain", "job.store", "left", "--store", "job.store")
    assert twice.exit_code == 2 and "name the job once" in twice.stderr
