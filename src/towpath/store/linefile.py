"""A file of JSON lines that only grows, and of which a crash may have left half a line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class LineFile:
    """Remembers how far it was read: both `news` and `append` go on from there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0  # bytes

    def news(self) -> list[Any]:
        """What came since the last time."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                lines = [line for line in file if line.endswith(b"\n")]
        except FileNotFoundError:
            return []
        self._read += sum(map(len, lines))
        return [json.loads(line) for line in lines]

    def append(self, values: Sequence[Any]) -> None:
        """On disk before anybody relies on it. Only one may write, after reading what is there."""
        if not values:
            return
        lines = "".join(json.dumps(value) + "\n" for value in values).encode()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.truncate(self._read)  # what a crash left of a line
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        self._read += len(lines)
