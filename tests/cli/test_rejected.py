from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from tests.stores import make_store

from towpath.cli.app import main
from towpath.control.journal.journal import Journal
from towpath.store.layout import Store
from towpath.streams.reading import Reject
from towpath.streams.rejected import BadMessage, DeadLetters, Tally, TopicLetters


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = make_store(tmp_path / "job.store")
    rejected = Store(root).rejected
    letters = DeadLetters(rejected, "key", ["bids"])
    letters.write("/data/bids/1.csv", [Reject(3, "no BIGINT", "x,1"), Reject(9, "it has no event time")])
    letters.write("/data/bids/2.csv", [Reject(None, "it is a folder", rows=0)])
    letters.write("/data/bids/2.csv", [Reject(None, "it is a folder", rows=0)])  # as another carrier sees it
    letters.write("/data/bids/3.csv", [Reject(2, "repaired since")])
    letters.write("/data/bids/3.csv", [])
    DeadLetters(rejected, "other", ["pump1"]).write("/data/pumps/1.csv", [Reject(2, "no DOUBLE")])
    DeadLetters(rejected, "other", ["pump2"]).write("/data/pumps/1.csv", [Reject(2, "no DOUBLE")])
    return root


def rejected(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["rejected", *arguments])


def test_what_was_not_taken_in_is_listed_and_counted(store: Path) -> None:
    result = rejected(str(store))
    assert result.exit_code == 0
    assert "/data/bids/1.csv" in result.stdout and "it is a folder" in result.stdout
    assert "repaired" not in result.stdout
    assert "3 rows and 1 file were not taken in (bids: 3, pump1 and 1 more: 1)" in result.stdout


def test_json_has_everything_of_a_stream(store: Path) -> None:
    found = json.loads(rejected(str(store), "--stream", "pump2", "--json").stdout)
    assert found == [
        {
            "streams": ["pump1", "pump2"],
            "file": "/data/pumps/1.csv",
            "line": 2,
            "reason": "no DOUBLE",
            "text": "",
            "rows": 1,
            "topic": None,
            "partition": None,
            "offset": None,
        }
    ]


def test_a_stream_that_there_is_not_is_reported(store: Path) -> None:
    result = rejected(str(store), "--stream", "pump3")
    said = f"{store}: there is no stream named 'pump3'"
    hint = "did you mean pump2? known: bids, pump1, pump2"
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"{said}\n    -> {hint}\n")
    result = rejected(str(store), "--stream", "pump3", "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    problem = {"where": "", "message": said, "hint": hint, "excerpt": ""}
    assert json.loads(result.stdout) == {"ok": False, "title": said, "problems": [problem]}


def test_a_stream_of_which_all_was_taken_in_has_nothing(store: Path) -> None:
    journal = Journal(Store(store).journal)
    journal.streams = [{"name": "asks"}]
    journal.close()
    assert json.loads(rejected(str(store), "--stream", "asks", "--json").stdout) == []


def test_messages_are_listed_with_their_topic_partition_and_offset(store: Path) -> None:
    letters = TopicLetters(Store(store).rejected, "orders", pa.schema([("at", pa.int64())]), "at", ["orders"])
    bad = BadMessage(2, 17, "not JSON", "x")
    letters.write([bad])
    letters.write([bad, BadMessage(0, 4, "not JSON", "y")])  # as another carrier reads them
    result = rejected(str(store))
    assert "topic orders, partition 2" in result.stdout
    assert "3 rows, 2 messages and 1 file were not taken in (bids: 3, orders: 2, pump1 and 1 more: 1)" in result.stdout
    first, second = json.loads(rejected(str(store), "--stream", "orders", "--json").stdout)
    assert (first["topic"], first["partition"], first["offset"]) == ("orders", 0, 4)
    assert (second["partition"], second["offset"], second["reason"], second["text"]) == (2, 17, "not JSON", "x")


def test_a_tally_counts_what_is_listed(store: Path) -> None:
    folder = Store(store).rejected
    tally = Tally(folder)
    assert (tally.count(), tally.count()) == (4, 4)
    DeadLetters(folder, "key", ["bids"]).write("/data/bids/1.csv", [])
    assert tally.count() == 2
    assert Tally(folder / "nothing").count() == 0


def test_a_job_that_refused_nothing_says_so(tmp_path: Path) -> None:
    result = rejected(str(make_store(tmp_path / "job.store")))
    assert "0 rows and 0 files were not taken in" in result.stdout
