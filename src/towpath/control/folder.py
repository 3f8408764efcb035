"""The queries folder: every *.sql file in it is a query named by its stem.

Writing a file submits it, deleting it withdraws it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

Stamp = tuple[int, int]  # time of modification and size


@dataclass(frozen=True)
class Changes:
    written: dict[str, str] = field(default_factory=dict)  # name -> SQL
    removed: tuple[str, ...] = ()


class QueryFolder:
    """Looks instead of being told: a folder on shared storage tells nobody about its changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = self._stamps()

    def file(self, name: str) -> Path:
        return self._path / f"{name}.sql"

    def changes(self) -> Changes:
        """What is new, changed or gone since the last call."""
        now = self._stamps()
        fresh = [name for name, stamp in now.items() if self._known.get(name) != stamp]
        written = {name: text for name in fresh if (text := self._read(name))}
        removed = tuple(name for name in self._known if name not in now)
        self._known = now
        return Changes(written, removed)

    def _stamps(self) -> dict[str, Stamp]:
        found = {}
        for file in self._path.glob("*.sql"):
            try:
                stat = file.stat()
            except FileNotFoundError:
                continue
            found[file.stem] = (stat.st_mtime_ns, stat.st_size)
        return found

    def _read(self, name: str) -> str:
        try:
            return self.file(name).read_text()
        except FileNotFoundError:
            return ""
