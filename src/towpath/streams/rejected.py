"""What was not taken in: rows, files and messages that are refused, kept in the store with their place and the reason.

    <folder>/<key>/about.json        the streams that read a folder of files, or a topic
    <folder>/<key>/<file>.jsonl      of one file: its path, then a line for each row that is refused
    <folder>/<key>/<file>.changed    a file that has changed since
    <folder>/<key>/<hash>.messages   of a topic: its name, then a line for each message that is refused

A file's letter is written as a whole before anybody counts on what is good in the file, and says the same whoever
writes it. So a row is in it once, however many carriers read the file, are killed or repeat a micro-batch. Messages are
read in pieces that differ from carrier to carrier; their partition and offset show which are the same.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from towpath.store import durable
from towpath.streams.reading import Reject

LETTER, CHANGED, MESSAGES = ".jsonl", ".changed", ".messages"
SETTLED_NS = 1_000_000_000
CHANGED_REASON = (
    "it has changed since it was taken in: rows that were added are not taken in, and what was not released yet "
    "is read as it is now -> write new rows to a new file"
)


@dataclass(frozen=True)
class Rejected:
    """A row of a file, a file as a whole, or a message that was not taken in."""

    streams: tuple[str, ...]
    file: str  # of a message, "topic NAME, partition N"
    line: int | None  # None: the file, or as many rows as `rows` says; of a message its offset
    reason: str
    text: str
    rows: int
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class BadMessage:
    partition: int
    offset: int
    reason: str
    text: str


class DeadLetters:
    """Of one folder of files, which `key` stands for."""

    def __init__(self, folder: Path, key: str, streams: Sequence[str]) -> None:
        self._folder = folder / key
        self._streams = streams

    def write(self, path: str, rejects: Sequence[Reject]) -> None:
        """All that is refused of a file; none if it is good, also if it was not so earlier."""
        letter = self._place(path, LETTER)
        if not rejects:
            letter.unlink(missing_ok=True)
            return
        _introduce(self._folder, self._streams)
        _write(letter, [{"file": path}, *(asdict(reject) for reject in rejects)])

    def changed(self, path: str) -> None:
        _introduce(self._folder, self._streams)
        _write(self._place(path, CHANGED), [{"file": path}, asdict(Reject(None, CHANGED_REASON, rows=0))])

    def _place(self, path: str, suffix: str) -> Path:
        return self._folder / f"{_hash(path)}{suffix}"


class TopicLetters:
    """Of one topic, for streams that see the same columns in it."""

    def __init__(self, folder: Path, topic: str, schema: pa.Schema, time: str, streams: Sequence[str]) -> None:
        self._folder = folder / _hash(f"topic {topic} by {time} of {schema.to_string()}")
        self._topic = topic
        self._streams = streams

    def write(self, messages: Iterable[BadMessage]) -> None:
        """Before anybody counts on the others. Who repeats it writes the same file."""
        values = [asdict(message) for message in messages]
        if values:
            _introduce(self._folder, self._streams)
            places = ", ".join(f"{value['partition']}:{value['offset']}" for value in values)
            _write(self._folder / f"{_hash(places)}{MESSAGES}", [{"topic": self._topic}, *values])


def _introduce(folder: Path, streams: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    about = folder / "about.json"
    known = json.loads(about.read_text())["streams"] if about.exists() else []
    if set(streams) - set(known):
        _write(about, [{"streams": sorted({*known, *streams})}])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:24]


def rejected(folder: Path) -> Iterator[Rejected]:
    """All that a job did not take in, file by file and topic by topic."""
    for place in sorted(path for path in folder.glob("*") if path.is_dir()):
        yield from _of_place(place)


class Tally:
    """How much was not taken in so far; what has not changed since the last time is not read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[int, int]] = {}  # by place: when it last changed, and how much is there

    def count(self) -> int:
        """Rows, messages, and files as a whole."""
        places = list(self._folder.glob("*/")) if self._folder.is_dir() else []
        self._known = {place.name: self._look(place) for place in places}
        return sum(rejects for _, rejects in self._known.values())

    def _look(self, place: Path) -> tuple[int, int]:
        changed_ns = place.stat().st_mtime_ns  # every letter comes and goes by a change of the folder
        known = self._known.get(place.name)
        if known is not None and known[0] == changed_ns:
            return known
        rejects = sum(max(1, reject.rows) for reject in _of_place(place))
        # A clock that ticks coarsely may give the next change the same time.
        return (changed_ns if time.time_ns() - changed_ns > SETTLED_NS else 0), rejects


def _of_place(place: Path) -> Iterator[Rejected]:
    try:
        streams = tuple(json.loads((place / "about.json").read_text())["streams"])
    except FileNotFoundError:
        return
    letters = [_read(path) for path in place.glob("*") if path.suffix in (LETTER, CHANGED)]
    for about, rejects in sorted(filter(None, letters), key=lambda letter: letter[0]["file"]):
        for reject in rejects:
            yield Rejected(streams, about["file"], **reject)
    yield from _messages(place, streams)


def _messages(place: Path, streams: tuple[str, ...]) -> Iterator[Rejected]:
    found: dict[tuple[int, int], Rejected] = {}
    for about, rejects in filter(None, map(_read, place.glob(f"*{MESSAGES}"))):
        for message in map(lambda said: BadMessage(**said), rejects):
            where, number = f"topic {about['topic']}, partition {message.partition}", message.offset
            details = (message.reason, message.text, 1, about["topic"], message.partition, number)
            found[message.partition, number] = Rejected(streams, where, number, *details)
    yield from (found[key] for key in sorted(found))


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    try:
        about, *rejects = [json.loads(line) for line in path.read_text().splitlines()]
    except FileNotFoundError:
        return None  # it was repaired a moment ago
    return about, rejects


def _write(path: Path, values: Sequence[dict[str, Any]]) -> None:
    with durable.writing(path, alone=False) as scratch:
        scratch.write_text("".join(json.dumps(value) + "\n" for value in values))
