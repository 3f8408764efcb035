"""The cases in data/: SQL texts and what parsing each must give.

`python -m tests.lang.cases` writes what parsing gives now into the files; read the difference before you keep it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from towpath.errors import QueryError
from towpath.lang import Query, parse, to_sql
from towpath.schema import Catalog, Stream, column_of, reference_table

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Case:
    file: str
    sql: str
    expected: str

    @property
    def id(self) -> str:
        return f"{self.file}: {' '.join(self.sql.split())[:80]}"


def catalog() -> dict[str, Stream]:
    """A market's streams and two road sensors; columns of all seven types."""
    return _streams("catalog.yaml")


def structs() -> dict[str, Stream]:
    """Streams with fields of structs, one called like a stream, an event time in one, and decimals."""
    known = _streams("structs.yaml")
    return known | {"events": replace(known["events"], time="meta.at")}


def _streams(file: str) -> dict[str, Stream]:
    streams = yaml.safe_load((DATA / file).read_text())
    return {
        name: Stream(name, tuple(column_of(column, kind) for column, kind in columns.items()), "at")
        for name, columns in streams.items()
    }


def catalog_of(file: str) -> Catalog:
    """Queries over reference tables have some, those of fields and decimals such streams, all others neither."""
    if file.endswith(("_fields", "_decimals")):
        return structs()
    return catalog() | tables() if file.endswith("_tables") else catalog()


def tables() -> dict[str, Stream]:
    found = yaml.safe_load((DATA / "tables.yaml").read_text())
    return {
        name: reference_table(name, tuple(column_of(column, kind) for column, kind in columns.items()))
        for name, columns in found.items()
    }


def load(pattern: str) -> list[Case]:
    return [
        Case(path.stem, entry["sql"], entry["expected"].rstrip("\n"))
        for path in sorted(DATA.glob(pattern))
        for entry in yaml.safe_load(path.read_text())
    ]


def answer(sql: str, known: Catalog) -> str:
    """What parsing gives, as text: the checked query with its columns, or the problems."""
    try:
        return describe(parse(sql, known))
    except QueryError as error:
        return "\n".join(str(problem) for problem in error.problems)


def describe(query: Query) -> str:
    columns = ", ".join(f"{c.name} {c.type.value}" for c in query.columns)
    return f"{to_sql(query)}\n-> {columns}"


def _block(dumper: yaml.Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def update() -> None:
    yaml.SafeDumper.add_representer(str, _block)
    for path in [*DATA.glob("valid*.yaml"), *DATA.glob("invalid*.yaml")]:
        entries = yaml.safe_load(path.read_text())
        fresh = [{"sql": e["sql"], "expected": answer(e["sql"], catalog_of(path.stem))} for e in entries]
        path.write_text(yaml.safe_dump(fresh, sort_keys=False, allow_unicode=True, width=10_000))


if __name__ == "__main__":
    update()
