"""What Spark says of a micro-batch, in our words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from towpath.runtime.carriers import BatchDone


def batch_done(carrier: str, progress: Mapping[str, Any], inputs: int, *, first: bool) -> BatchDone:
    metrics = {name: _metric(value) for name, value in progress["observedMetrics"].items()}
    versions = [m["version"] for name, m in metrics.items() if name.startswith("version_")]
    read = [metrics.get(f"input_i{n}") for n in range(inputs)]
    states = progress["stateOperators"]
    return BatchDone(
        carrier=carrier,
        batch=progress["batchId"],
        version=min(versions) if versions and None not in versions else None,
        newest_us=tuple(None if m is None else m["newest"] for m in read),
        watermark_us=_watermark(progress),
        rows=sum(m["rows"] for m in read if m is not None),
        late=sum(s["numRowsDroppedByWatermark"] for s in states),
        state_rows=sum(s["numRowsTotal"] for s in states),
        seconds=progress["durationMs"].get("triggerExecution", 0) / 1000,
        phases_ms={**progress["durationMs"], **_state_ms(states)},
        first=first,
    )


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
    return None if text is None else round(datetime.fromisoformat(text).timestamp() * 1_000_000)
