"""Files that are either there as a whole or not at all, also after a power cut."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def sync(path: Path) -> None:
    """Bring a file's content, or a folder's entries, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(temporary: Path, final: Path) -> None:
    """Give a finished file its name."""
    sync(temporary)
    os.replace(temporary, final)
    sync(final.parent)


def write_json(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".tmp-{path.name}")
    temporary.write_text(json.dumps(data, indent=1), encoding="utf-8")
    publish(temporary, path)
