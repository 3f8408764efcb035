"""What the inputs of a carrier still had to read when it did a micro-batch, as its progress and its checkpoint show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from towpath.schema import BEFORE_ALL_US
from towpath.spark.feeds import MORE
from towpath.spark.inputs import MOST_BYTES, MOST_FILES
from towpath.streams.feed import FeedPosition


def has_more(progress: Mapping[str, Any], checkpoint: Path) -> bool:
    """Whether a micro-batch left something unread."""
    return any(_has_more(source, checkpoint / "sources" / str(n)) for n, source in enumerate(progress["sources"]))


def known_us(progress: Mapping[str, Any]) -> int | None:
    """The newest event time of the rows that feeds know of, given out or held back."""
    known = [
        p.released_us for source in progress["sources"] if (p := _position(source.get("latestOffset"))) is not None
    ]
    return max((us for us in known if us > BEFORE_ALL_US), default=None)


def _has_more(source: Mapping[str, Any], log: Path) -> bool:
    end, latest = _offset(source["endOffset"]), _offset(source.get("latestOffset"))
    if isinstance(end, dict) and end.keys() == {"logOffset"}:
        return _is_full(log, int(end["logOffset"]))
    if isinstance(latest, dict) and MORE in latest:
        return bool(latest[MORE])  # what a feed holds back is known by its event times
    return latest is not None and end != latest


def _offset(text: object) -> object:
    return json.loads(text) if isinstance(text, str) else text


def _position(offset: object) -> FeedPosition | None:
    value = _offset(offset)
    if not isinstance(value, dict) or MORE not in value:
        return None
    return FeedPosition.from_json({name: at for name, at in value.items() if name != MORE})


def _is_full(log: Path, offset: int) -> bool:
    """Whether Spark's own reader took about as much for one of its offsets as it may. Of ticks, too; they are few."""
    for name in (str(offset), f"{offset}.compact"):
        try:
            lines = (log / name).read_text().splitlines()[1:]  # the first is the version
        except FileNotFoundError:
            continue
        entries = [entry for entry in map(json.loads, lines) if entry["batchId"] == offset]
        # The bound is one of bytes, made of the size of the files that were there at first.
        return len(entries) >= MOST_FILES / 2 or sum(map(_size, entries)) >= MOST_BYTES / 2
    return False


def _size(entry: Mapping[str, Any]) -> int:
    try:
        return Path(unquote(urlsplit(entry["path"]).path)).stat().st_size
    except OSError:  # it is gone, or elsewhere
        return 0
