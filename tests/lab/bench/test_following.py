from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.lab.bench.following import Arrival, Follower
from towpath.results import Part

NOW = 1_800_000_000.0


def commit(root: Path, batch: int, times: list[float]) -> None:
    """A micro-batch with one result of fragment 1 at each of these times."""
    folder = root / f"batch={batch}"
    folder.mkdir(parents=True)
    stamps = pa.array([datetime.fromtimestamp(t, UTC) for t in times], pa.timestamp("us", tz="UTC"))
    columns = {"_fragment": pa.array([1] * len(times), pa.int32()), "_time": stamps, "_born": stamps, "c": stamps}
    pq.write_table(pa.table(columns), folder / "part-0.parquet")
    (folder / "_SUCCESS").touch()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [NOW]
    monkeypatch.setattr("towpath.lab.bench.following.time.time", lambda: now[0])
    return now


def follower(root: Path) -> Follower:
    return Follower(lambda query: [Part(root, 1, (("c", "c"),))], "q")


def test_what_was_there_before_is_not_followed(tmp_path: Path, clock: list[float]) -> None:
    commit(tmp_path, 0, [NOW - 100])
    mine = follower(tmp_path)
    mine.look()
    assert mine.arrivals == []
    assert mine.longest_s == 0


def test_delays_are_from_the_earliest_result_to_the_look_that_finds_it(tmp_path: Path, clock: list[float]) -> None:
    mine = follower(tmp_path)
    commit(tmp_path, 0, [NOW - 3, NOW - 1])
    mine.look()
    clock[0] = NOW + 2
    mine.look()
    commit(tmp_path, 1, [NOW + 1])
    mine.look()
    assert mine.arrivals == [Arrival(NOW, NOW - 3, NOW - 1), Arrival(NOW + 2, NOW + 1, NOW + 1)]
    assert mine.longest_s == 3


def test_pauses_of_a_span_and_the_first_result_since(tmp_path: Path, clock: list[float]) -> None:
    mine = follower(tmp_path)
    mine.arrivals = [Arrival(NOW + at, NOW + at - 1, NOW + at - 0.5) for at in (0, 1, 5, 6)]
    assert mine.pauses_s(NOW + 2, NOW + 4) == [4]
    assert mine.pauses_s(NOW, NOW + 10) == [1, 4, 1]
    assert mine.first_since(NOW + 1) == NOW + 5
    assert mine.first_since(NOW + 9) is None
