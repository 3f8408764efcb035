"""What was not taken in: rows and files that are refused, kept in the store with their place and the reason.

    <folder>/<key>/about.json       the streams that read a folder of files
    <folder>/<key>/<file>.jsonl     of one file: its path, then a line for each row that is refused
    <folder>/<key>/<file>.changed   a file that has changed since

A file's letter is written as a whole before anybody counts on what is good in the file, and says the same whoever
writes it. So a row is in it once, however many carriers read the file, are killed or repeat a micro-batch.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from towpath.streams.reading import Reject

LETTER, CHANGED = ".jsonl", ".changed"
CHANGED_REASON = (
    "it has changed since it was taken in: rows that were added are not taken in, and what was not released yet "
    "is read as it is now -> write new rows to a new file"
)


@dataclass(frozen=True)
class Rejected:
    """A row of a file, or a file as a whole, that was not taken in."""

    streams: tuple[str, ...]
    file: str
    line: int | None  # None: the file, or as many rows as `rows` says
    reason: str
    text: str
    rows: int


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
        self._introduce()
        _write(letter, [{"file": path}, *(asdict(reject) for reject in rejects)])

    def changed(self, path: str) -> None:
        self._introduce()
        _write(self._place(path, CHANGED), [{"file": path}, asdict(Reject(None, CHANGED_REASON, rows=0))])

    def _introduce(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        about = self._folder / "about.json"
        known = json.loads(about.read_text())["streams"] if about.exists() else []
        if set(self._streams) - set(known):
            _write(about, [{"streams": sorted({*known, *self._streams})}])

    def _place(self, path: str, suffix: str) -> Path:
        return self._folder / f"{hashlib.sha256(path.encode(errors='surrogateescape')).hexdigest()[:24]}{suffix}"


def rejected(folder: Path) -> Iterator[Rejected]:
    """All that a job did not take in, file by file."""
    for place in sorted(path for path in folder.glob("*") if path.is_dir()):
        try:
            streams = tuple(json.loads((place / "about.json").read_text())["streams"])
        except FileNotFoundError:
            continue
        letters = [_read(path) for path in place.glob("*") if path.suffix in (LETTER, CHANGED)]
        for file, rejects in sorted(filter(None, letters), key=lambda letter: letter[0]):
            for reject in rejects:
                yield Rejected(streams, file, **reject)


def _read(path: Path) -> tuple[str, list[dict[str, Any]]] | None:
    try:
        about, *rejects = [json.loads(line) for line in path.read_text().splitlines()]
    except FileNotFoundError:
        return None  # it was repaired a moment ago
    return about["file"], rejects


def _write(path: Path, values: Sequence[dict[str, Any]]) -> None:
    scratch = path.parent / f".{uuid.uuid4().hex}"
    with scratch.open("w") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
