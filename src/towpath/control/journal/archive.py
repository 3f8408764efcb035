"""What the journal keeps of the past, and how it goes: nothing that runs depends on how much there is of it.

A query that was withdrawn is kept for those who read its results until these are beyond their retention, and until its
sink has them all. What only such queries needed goes with them: parts, fragments, at last whole carriers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from towpath.control.decide.forgetting import Dropped

HISTORY_KEPT = 200_000  # entries at most, whatever the retention

TABLES = """
CREATE TABLE IF NOT EXISTS numbers (kind TEXT PRIMARY KEY, last INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS queries_by_name ON queries (name);
CREATE INDEX IF NOT EXISTS queries_by_series ON queries (series);
CREATE INDEX IF NOT EXISTS queries_running ON queries (id) WHERE running;
CREATE INDEX IF NOT EXISTS queries_aside ON queries (id) WHERE failed IS NOT NULL;
CREATE INDEX IF NOT EXISTS queries_ended ON queries (ended_us) WHERE NOT running;
CREATE INDEX IF NOT EXISTS queries_to_feed ON queries (id) WHERE sink IS NOT NULL AND NOT fed;
CREATE INDEX IF NOT EXISTS fragments_there ON fragments (id) WHERE status != 'gone';
CREATE INDEX IF NOT EXISTS fragments_by_carrier ON fragments (carrier);
CREATE INDEX IF NOT EXISTS fragments_by_shape ON fragments (text_shape);
CREATE INDEX IF NOT EXISTS parts_by_shape ON parts (whole_shape) WHERE whole_shape IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_open ON parts (query) WHERE NOT done;
CREATE INDEX IF NOT EXISTS parts_by_fragment ON parts (fragment);
CREATE INDEX IF NOT EXISTS moves_open ON moves (id) WHERE step NOT IN ('done', 'abandoned');
CREATE INDEX IF NOT EXISTS history_by_time ON history (at_us);
"""

# What the controller decides about; the rest is for readers of results, and for those who feed sinks.
NEWER = "SELECT 1 FROM queries AS newer WHERE newer.name = q.name AND newer.id > q.id"
STANDING = (
    "SELECT id FROM queries WHERE running UNION SELECT query FROM parts WHERE NOT done "
    f"UNION SELECT id FROM queries AS q WHERE failed IS NOT NULL AND NOT EXISTS ({NEWER})"
)
LIVE_QUERIES = f"SELECT * FROM queries WHERE id IN ({STANDING})"
OPEN_MOVES = "SELECT * FROM moves WHERE step NOT IN ('done', 'abandoned')"
LIVE_FRAGMENTS = (
    "SELECT * FROM fragments WHERE status != 'gone' UNION SELECT * FROM fragments WHERE "
    f"id IN (SELECT fragment FROM parts WHERE query IN ({STANDING})) "
    f"OR id IN (SELECT source FROM ({OPEN_MOVES})) OR id IN (SELECT target FROM ({OPEN_MOVES}))"
)
LIVE_PARTS = f"SELECT * FROM parts WHERE query IN ({STANDING})"


class Archive:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def forget(self, before_us: int | None, dropped: Dropped) -> int:
        """Removes queries that ended before a time and whose sinks have everything, and what only they needed.

        Of what the controller has dropped, that which no query needs for its results goes, too. None: nothing is too
        old. Returns how many queries were removed.
        """
        with self._db:
            self._keep_numbers()
            old = [] if before_us is None else self._ended_before(before_us)
            touched = {fragment for query in old for fragment in self._fragments_of(query)}
            shapes = self._shapes_of(old, touched.union(dropped.fragments))
            for query in old:
                self._remove_query(query)
            for fragment in touched.union(dropped.fragments):
                self._remove_fragment(fragment)
            self._remove_shapes(shapes)
            self._db.executemany("DELETE FROM moves WHERE id = ?", ((number,) for number in dropped.moves))
            self._db.execute("DELETE FROM history WHERE at_us < ?", (before_us or 0,))
            newest = "SELECT max(number) FROM history"
            self._db.execute(f"DELETE FROM history WHERE number <= ({newest}) - ?", (HISTORY_KEPT,))
        self._db.execute("PRAGMA incremental_vacuum(1000)").fetchall()
        return len(old)

    def mark_fed(self, queries: Iterable[int]) -> None:
        """Their sinks have everything: nobody looks after them any more."""
        with self._db:
            self._db.executemany("UPDATE queries SET fed = 1 WHERE id = ?", ((number,) for number in queries))

    def orphans(self) -> Dropped:
        """What a controller that died had yet to report as unneeded: fragments without a part, ended moves."""
        unused = self._db.execute(
            "SELECT id FROM fragments WHERE status = 'gone' AND NOT EXISTS "
            "(SELECT 1 FROM parts WHERE fragment = fragments.id)"
        )
        fragments = tuple(number for (number,) in unused)
        ended = self._db.execute("SELECT id FROM moves WHERE step IN ('done', 'abandoned')")
        return Dropped(fragments, tuple(number for (number,) in ended))

    def retire(self, carriers: Sequence[str]) -> list[str]:
        """Removes those of some carriers of which no fragment is left, and returns which they were."""
        bare = [name for name in carriers if not self._has_fragments(name)]
        if bare:
            with self._db:
                self._keep_numbers()
                self._db.executemany("DELETE FROM carriers WHERE id = ?", ((name,) for name in bare))
        return bare

    def numbers(self) -> dict[str, int]:
        """By kind, the highest number ever given; of carriers, the next."""
        found: dict[str, int] = dict(self._db.execute("SELECT kind, last FROM numbers").fetchall())
        for kind in ("fragments", "queries", "moves"):
            (highest,) = self._db.execute(f"SELECT max(id) FROM {kind}").fetchone()
            found[kind] = max(found.get(kind, 0), highest or 0)
        given = [int(name[1:]) + 1 for (name,) in self._db.execute("SELECT id FROM carriers")]
        return found | {"carriers": max([found.get("carriers", 0), *given])}

    def _keep_numbers(self) -> None:
        """Before records go: no number is given twice, for a results log may still have rows of it."""
        self._db.executemany("INSERT OR REPLACE INTO numbers VALUES (?, ?)", self.numbers().items())

    def _has_fragments(self, carrier: str) -> bool:
        return bool(self._db.execute("SELECT 1 FROM fragments WHERE carrier = ? LIMIT 1", (carrier,)).fetchone())

    def _ended_before(self, before_us: int) -> list[int]:
        found = self._db.execute(
            "SELECT id FROM queries AS q WHERE NOT running AND ended_us < ? AND (sink IS NULL OR fed) "
            "AND NOT EXISTS (SELECT 1 FROM parts WHERE query = q.id AND NOT done) "
            f"AND (failed IS NULL OR EXISTS ({NEWER}))",
            (before_us,),
        )
        return [number for (number,) in found]

    def _fragments_of(self, query: int) -> list[int]:
        found = self._db.execute("SELECT DISTINCT fragment FROM parts WHERE query = ?", (query,))
        return [fragment for (fragment,) in found]

    def _remove_query(self, query: int) -> None:
        self._db.execute("DELETE FROM parts WHERE query = ?", (query,))
        self._db.execute("DELETE FROM queries WHERE id = ?", (query,))

    def _shapes_of(self, queries: Iterable[int], fragments: Iterable[int]) -> set[str]:
        run = self._db.execute
        whole = "SELECT whole_shape FROM parts WHERE query = ? AND whole_shape IS NOT NULL"
        found = [name for query in queries for (name,) in run(whole, (query,))]
        of_fragment = "SELECT text_shape FROM fragments WHERE id = ?"
        return {*found, *(name for fragment in fragments for (name,) in run(of_fragment, (fragment,)))}

    def _remove_shapes(self, names: Iterable[str]) -> None:
        """Of those, the ones that nothing has any more."""
        self._db.executemany(
            "DELETE FROM shapes WHERE id = :id AND NOT EXISTS (SELECT 1 FROM fragments WHERE text_shape = :id) "
            "AND NOT EXISTS (SELECT 1 FROM parts WHERE whole_shape = :id)",
            ({"id": name} for name in names),
        )

    def _remove_fragment(self, number: int) -> None:
        self._db.execute(
            "DELETE FROM fragments WHERE id = :id AND status = 'gone' "
            "AND NOT EXISTS (SELECT 1 FROM parts WHERE fragment = :id) "
            f"AND NOT EXISTS (SELECT 1 FROM ({OPEN_MOVES}) WHERE source = :id OR target = :id)",
            {"id": number},
        )
