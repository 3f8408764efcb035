"""The files from which those who read links learn who makes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from towpath.control.decide.links import Links
from towpath.control.state.records import CarrierRecord, FragmentRecord, PartRecord, QueryRecord, Record
from towpath.results.links import Link, mark
from towpath.schema import is_link
from towpath.store.layout import Store


def concerns_links(changed: Iterable[Record]) -> bool:
    """Whether what changed may stand in a link's file: not how far carriers have come, the most frequent news."""
    return any(isinstance(record, FragmentRecord | PartRecord | QueryRecord) for record in changed)


class LinkFiles:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[Path, Link] | None = None

    def write(self, links: Links) -> None:
        """Brings the files up to what the controller knows."""
        wanted = {
            self._store.links(schema_class) / f"{link.name}.json": link
            for schema_class, link in links.declared(self._root)
        }
        written = self._written if self._written is not None else dict.fromkeys(self._found())
        for path, link in wanted.items():
            if written.get(path) != link:
                link.write(path.parent)
        for path in written.keys() - wanted.keys():
            path.unlink(missing_ok=True)
        self._written = wanted

    def behind(self, carrier: CarrierRecord) -> bool:
        """Whether a carrier has not read all that its links would give it."""
        seen = carrier.inputs_us or (None,) * len(carrier.template.family.classes)
        return any(
            released is not None and (us is None or us < released)
            for us, c in zip(seen, carrier.template.family.classes, strict=True)
            if is_link(c) and (released := self._released(self._store.links(c))) is not None
        )

    def _released(self, folder: Path) -> int | None:
        """The event time that all links of a class have reached."""
        marks = [mark(link) for path, link in (self._written or {}).items() if path.parent == folder]
        known = [us for us in marks if us is not None]
        return min(known) if known and len(known) == len(marks) else None

    def _root(self, carrier: str) -> str:
        return str(self._store.results(carrier).absolute())

    def _found(self) -> list[Path]:
        return list((self._store.root / "links").glob("*/*.json"))
