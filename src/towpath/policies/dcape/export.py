"""What was reported during a run, as a table that a spreadsheet opens (section 4.3)."""

from __future__ import annotations

from towpath.policies.dcape.manager import Manager
from towpath.runtime.actors import Actors


def reported(actors: Actors) -> list[dict[str, object]]:
    """Of the managers that agents report to, in the order of time; what went on upwards would only repeat it."""
    names = ("seconds", "kind", "name", "property", "value")
    found = [row for actor in actors.actors if isinstance(actor, Manager) for row in actor.reported()]
    return [dict(zip(names, row, strict=True)) for row in sorted(found, key=lambda row: row[0])]
