"""What the sections of a problem file share: they collect mistakes, and know where every thing was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from towpath.config.settings import Settings, problems, shown
from towpath.config.yamlfile import Lines
from towpath.errors import Mistake
from towpath.problems import tables
from towpath.problems.tables import ProblemTable, TableColumn

_Model = TypeVar("_Model", bound=Settings)
Thing = tuple[str, str]  # its kind (node, stream, operator, fragment, query, pinned, current) and its name


class ProblemReader:
    def __init__(self, path: Path, lines: Lines) -> None:
        self.path = path
        self.problems: list[Mistake] = []
        self.broken: set[Thing] = set()  # what a mistake was found in; it takes part, so that its readers find it
        self._lines = lines
        self._places: dict[Thing, str] = {}
        self._tables: list[tuple[str, ProblemTable, int]] = []  # kind of thing, table, its column of names

    @property
    def folder(self) -> Path:
        return self.path.parent

    def refuse(self, where: str, message: str, hint: str = "", excerpt: str = "") -> None:
        self.problems.append(Mistake(self._with_line(where), message, hint, excerpt))

    def report(self, kind: str, name: str, message: str, hint: str) -> None:
        """A mistake in something that was read before."""
        self.problems.append(Mistake(self._where(kind, name), message, hint))

    def checked(self, model: type[_Model], value: object, where: str, thing: Thing | None = None) -> _Model | None:
        if thing:
            self._places[thing] = where
        try:
            return model.model_validate({} if value is None else value)
        except ValidationError as error:
            found = problems(error, where, model, {})
            self.problems += (replace(p, where=self._with_line(p.where)) for p in found)
            if thing:
                self.broken.add(thing)
            return None

    def entries(self, value: object, where: str, example: str) -> Mapping[str, Any]:
        """The entries of a section, none if it is something else."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.refuse(where, f"expected keys with values, got {shown(value)}", f"as in {example}")
            return {}
        return value

    def table(self, name: object, kind: str, expected: Sequence[TableColumn], column: int = 0) -> ProblemTable | None:
        """The table that a section names instead of its entries; None if it names none."""
        if not isinstance(name, str) or not name.endswith(tables.KINDS):
            return None
        table = tables.read(self.folder / name, expected)
        self.problems += table.problems
        self._tables.append((kind, table, column))
        return table

    def also(self, table: ProblemTable, kind: str, column: int) -> None:
        """The table names things of another kind too."""
        self._tables.append((kind, table, column))

    @property
    def lacks_a_table(self) -> bool:
        return any(table.problems for _, table, _ in self._tables)

    def put(self, thing: Thing, where: str) -> None:
        self._places[thing] = where

    def _where(self, kind: str, name: str) -> str:
        if (kind, name) in self._places:
            return self._with_line(self._places[kind, name])
        for of, table, column in self._tables:
            if of == kind and table.columns and name in table.columns[column]:
                return table.where(table.columns[column].index(name), f"{kind} {name}")
        return f"{kind} {name}" if name else self._with_line(kind)

    def _with_line(self, where: str) -> str:
        """With the line of the value itself, else of what it should be in."""
        place = where
        while place and place not in self._lines:
            place = place.rpartition(".")[0]
        return f"{where} (line {self._lines[place]})" if place else where
