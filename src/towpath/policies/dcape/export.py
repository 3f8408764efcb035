"""What was reported during a run, as a table that a spreadsheet opens."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from towpath.policies.dcape.monitor import Row
from towpath.runtime.moves import Actors

HEADINGS = ("seconds", "kind", "name", "property", "value")


def rows(actors: Actors) -> list[Row]:
    """Of the managers that agents report to, in the order of time; what went on upwards would only repeat it."""
    from towpath.policies.dcape.manager import Manager

    found = [row for actor in actors.actors if isinstance(actor, Manager) for row in actor.reported()]
    return sorted(found, key=lambda row: row[0])


def write(rows: Iterable[Row], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(HEADINGS)
        writer.writerows(rows)
