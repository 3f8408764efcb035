"""What is made of Spark's report of a micro-batch, with values worked out by hand."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from towpath.spark.inputs import number_of
from towpath.spark.progress import Reads, batch_done

SECOND = 1_000_000
# A join of a feed with what Spark reads itself; each has its ticks beside it.
INPUTS = [Reads(["s", "s2"], 2), Reads(["t"], 2)]
FED = {"files": 2, "released_us": 9 * SECOND, "elapsed_us": 0}
PROGRESS: dict[str, Any] = {
    "batchId": 7,
    "observedMetrics": {
        "version_wanted_i0": {"version": 4},
        "version_wanted_i1": {"version": 5},
        "version_matched": {"version": 5},
        "input_i0": {"rows": 3, "newest": 12 * SECOND, "late": None},
        "input_i1": {"rows": 2, "newest": None, "late": json.dumps([{"x": float(number_of("t")), "y": 2.0}])},
    },
    "sources": [
        {"startOffset": json.dumps(FED), "endOffset": json.dumps(FED | {"files": 3})},
        {"startOffset": '{"logOffset":0}', "endOffset": '{"logOffset":1}'},
        {"startOffset": '{"logOffset":5}', "endOffset": '{"logOffset":6}'},
        {"startOffset": None, "endOffset": '{"logOffset":0}'},
    ],
    "stateOperators": [{"numRowsTotal": 10}, {"numRowsTotal": 4}],
    "durationMs": {"triggerExecution": 250},
    "eventTime": {},
}


def test_the_oldest_version_that_any_part_read_counts() -> None:
    assert batch_done("c0", PROGRESS, INPUTS, first=False).version == 4
    unknown = PROGRESS["observedMetrics"] | {"version_matched": {"version": None}}
    assert batch_done("c0", PROGRESS | {"observedMetrics": unknown}, INPUTS, first=False).version is None


def test_positions_are_those_of_the_tuples_of_each_input() -> None:
    done = batch_done("c0", PROGRESS, INPUTS, first=False)
    begins, ends = ([place and json.loads(place) for place in places] for places in (done.begins, done.ends))
    assert begins == [FED, {"logOffset": 5}]
    assert ends == [FED | {"files": 3}, {"logOffset": 6}]
    assert done.bounds_us == (9 * SECOND, None), "only a feed's position is an event time"


def test_a_feed_with_generators_does_not_show_how_far_it_has_come() -> None:
    sources = [{"startOffset": json.dumps(FED | {"elapsed_us": 1}), "endOffset": None}, *PROGRESS["sources"][1:]]
    assert batch_done("c0", PROGRESS | {"sources": sources}, INPUTS, first=False).bounds_us == (None, None)


def test_tuples_are_counted_by_input() -> None:
    done = batch_done("c0", PROGRESS, INPUTS, first=True)
    assert (done.batch, done.first, done.rows, done.state_rows, done.seconds) == (7, True, 5, 14, 0.25)
    assert done.newest_us == (12 * SECOND, None)
    assert done.late == ({}, {"t": 2})


def late(*bars: tuple[float, float]) -> dict[str, int]:
    """Of a histogram's bars: what stands for a stream, and the count."""
    counts = {"rows": 9, "newest": SECOND, "late": json.dumps([{"x": x, "y": y} for x, y in bars])}
    metrics = PROGRESS["observedMetrics"] | {"input_i0": counts}
    return dict(batch_done("c0", PROGRESS | {"observedMetrics": metrics}, INPUTS, first=False).late[0])


def test_late_rows_of_several_partitions_are_added_up() -> None:
    s, s2 = float(number_of("s")), float(number_of("s2"))
    assert late((s, 1.0), (s, 2.0), (s2, 4.0)) == {"s": 3, "s2": 4}


def test_bars_that_spark_has_merged_are_a_little_beside_what_stands_for_a_stream() -> None:
    assert late((number_of("s") - 1.0, 3.0), (number_of("s2") + 1.0, 1.0)) == {"s": 3, "s2": 1}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(None, None), (0, 0), (90.5, 90_500_000), (-90.5, -90_500_000), (365.25 * 86_400 * 7000, 220_903_200_000_000_000)],
)
def test_watermarks_are_counted_from_a_day_before_the_first_timestamp(
    seconds: float | None, expected: int | None
) -> None:
    """There are 719,162 days from the year 1 to 1970."""
    text = "1970-01-01T00:00:00.000Z"
    if seconds is not None:
        days, rest = divmod(seconds, 86_400)
        cycles, days = divmod(days + 719_163, 146_097)  # days of 400 years
        at = datetime(1970, 1, 1) + timedelta(days=days, seconds=rest)
        text = f"{at.year + 400 * int(cycles)}{at:-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
    done = batch_done("c0", PROGRESS | {"eventTime": {"watermark": text}}, INPUTS, first=False)
    assert done.watermark_us == expected


def test_bytes_of_links_are_reported_by_link_and_times_by_the_node_that_made_them() -> None:
    """Three rows of 40 bytes together; a tick is of no link."""
    links = json.dumps([{"item": "link_a", "count": 2}, {"count": 5}, {"item": "link_b", "count": 1}])
    metrics = {"version_x": {"version": 1}, "input_i0": {"rows": 3, "newest": SECOND, "links": links, "bytes": 120}}
    before = {"links": 1, "released_us": SECOND, "took": {"far": [1, 2]}}
    after = {"links": 1, "released_us": 2 * SECOND, "took": {"far": [300_000, 1_500_000]}}
    source = {"startOffset": json.dumps(before), "endOffset": json.dumps(after)}
    progress = PROGRESS | {"observedMetrics": metrics, "sources": [source]}
    done = batch_done("c0", progress, [Reads([], 1)], first=False)
    assert done.link_bytes == {"link_a": 80.0, "link_b": 40.0}
    assert done.took == {"far": (0.3, 1.5)}
    source["startOffset"] = json.dumps(after)
    assert batch_done("c0", progress, [Reads([], 1)], first=False).took == {}, "of what was read before"
