"""What Spark says of a micro-batch, in our words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from towpath.runtime.carriers import BatchDone, LinkDelays
from towpath.schema import BEFORE_1970_US
from towpath.spark.inputs import number_of


@dataclass(frozen=True)
class Reads:
    """What one input of a carrier reads."""

    streams: Sequence[str]  # their names; of links none, they are never late
    sources: int  # of Spark; the first of them has the tuples, another one ticks


def batch_done(carrier: str, progress: Mapping[str, Any], inputs: Sequence[Reads], *, first: bool) -> BatchDone:
    metrics = {name: _metric(value) for name, value in progress["observedMetrics"].items()}
    versions = [m["version"] for name, m in metrics.items() if name.startswith("version_")]
    read = [metrics.get(f"input_i{n}") for n in range(len(inputs))]
    sources = [progress["sources"][sum(i.sources for i in inputs[:n])] for n in range(len(inputs))]
    states = progress["stateOperators"]
    return BatchDone(
        carrier=carrier,
        batch=progress["batchId"],
        version=min(versions) if versions and None not in versions else None,
        newest_us=tuple(None if m is None else m["newest"] for m in read),
        watermark_us=_watermark(progress),
        rows=sum(m["rows"] for m in read if m is not None),
        late=tuple(_late(m, i.streams) for m, i in zip(read, inputs, strict=True)),
        state_rows=sum(s["numRowsTotal"] for s in states),
        seconds=progress["durationMs"].get("triggerExecution", 0) / 1000,
        phases_ms={**progress["durationMs"], **_state_ms(states)},
        first=first,
        begins=tuple(_place(source["startOffset"]) for source in sources),
        ends=tuple(_place(source["endOffset"]) for source in sources),
        bounds_us=tuple(_bound(source["startOffset"]) for source in sources),
        link_bytes={name: size for m in read if m is not None for name, size in _link_bytes(m).items()},
        took={node: took for source in sources for node, took in _took(source).items()},
    )


def _link_bytes(metric: Mapping[str, Any]) -> dict[str, float]:
    """Rows are reported for each derived stream, the bytes of all together."""
    if not metric.get("links") or not metric["rows"]:
        return {}
    each = (metric.get("bytes") or 0) / metric["rows"]
    found = json.loads(metric["links"])
    return {entry["item"]: entry["count"] * each for entry in found if entry.get("item") is not None}


def _took(source: Mapping[str, Any]) -> dict[str, LinkDelays]:
    """Of what a micro-batch has read: a position also says it of what was read before."""
    start, end = _read(source["startOffset"]), _read(source["endOffset"])
    if not isinstance(end, Mapping) or "took" not in end or _bound(start) == _bound(end):
        return {}
    return {node: LinkDelays(*(us / 1e6 for us in times)) for node, times in end["took"].items()}


def _late(metric: Mapping[str, Any] | None, streams: Sequence[str]) -> dict[str, int]:
    if metric is None or not metric.get("late"):
        return {}
    names = {number_of(stream): stream for stream in streams}
    found = Counter[str]()
    for bar in json.loads(metric["late"]):
        # Each partition of a micro-batch may have a bar of its own for a stream. Where Spark has merged some, their
        # place was averaged, and need not be exact any more.
        number = int(bar["x"])
        name = names.get(number) or names[min(names, key=lambda known: abs(known - number))]
        found[name] += int(bar["y"])
    return dict(found)


def _place(offset: Any) -> str | None:
    return None if offset is None else json.dumps(_read(offset), sort_keys=True)


def _bound(offset: Any) -> int | None:
    """The event time that a position of a feed of files, or of links, stands for."""
    position = _read(offset)
    known = isinstance(position, Mapping) and "released_us" in position and not position.get("elapsed_us")
    return position["released_us"] if known else None


def _read(offset: Any) -> Any:
    if not isinstance(offset, str):
        return offset
    try:
        return json.loads(offset)
    except json.JSONDecodeError:
        return offset


def _state_ms(states: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What state took of addBatch, added up over the tasks, which run side by side."""
    spent = {"state": ("allUpdatesTimeMs", "allRemovalsTimeMs"), "stateCommit": ("commitTimeMs",)}
    return {name: sum(s.get(key, 0) for s in states for key in keys) for name, keys in spent.items()} if states else {}


def _metric(value: Any) -> Mapping[str, Any]:
    """An observed row: one with fields here, values beside their schema from an endpoint."""
    row: Mapping[str, Any] = value if isinstance(value, Mapping) else value.asDict()
    if row.keys() == {"values", "schema"}:
        return dict(zip((field["name"] for field in row["schema"]["fields"]), row["values"], strict=True))
    return row


def _watermark(progress: Mapping[str, Any]) -> int | None:
    text = progress["eventTime"].get("watermark") if progress["eventTime"] else None
    if text is None:
        return None
    # Years of more than four digits are none for Python, and every 400 years the calendar begins anew.
    year, _, rest = text.partition("-")
    cycles = max(0, int(year) - 2000) // 400
    within = datetime.fromisoformat(f"{int(year) - 400 * cycles:04}-{rest}") - datetime(1970, 1, 1, tzinfo=UTC)
    us = (within + cycles * timedelta(days=146_097)) // timedelta(microseconds=1)
    return us - BEFORE_1970_US if us else None  # it is 0 until every input has had tuples
