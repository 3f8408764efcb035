"""Reference tables in FROM: each becomes part of the input whose tuples look its rows up.

What ties a table to a stream are equalities of its columns with values of one input, which may come from a table that
was joined to it before. Which input that is, and in which order, does not depend on the order of FROM alone: equal
queries are to be equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from towpath.lang.decimals import like, of_decimal
from towpath.lang.query import ROW, Input, Lookup
from towpath.lang.scope import Scope, ScopedInput, column, conjuncts
from towpath.lang.typing import Unknown
from towpath.lang.underline import Problems
from towpath.schema import Catalog

_ONLY_EQUAL = "LEFT JOIN of a table goes by equalities of its columns alone"
Key = tuple[exp.Expression, str]  # a value of an input, and the column of a table that is to be equal


@dataclass
class Tables:
    """Puts the tables of a SELECT onto its inputs."""

    scope: Scope
    catalog: Catalog
    problems: Problems
    brought: dict[tuple[str, str], exp.Column] = field(default_factory=dict)  # what stands for a column of a table
    lookups: dict[str, tuple[Lookup, ...]] = field(default_factory=dict)  # by alias of the input
    outer: list[exp.Expression] = field(default_factory=list)  # the conditions of LEFT JOIN

    def attach(
        self, sources: Sequence[ScopedInput], where: list[exp.Expression]
    ) -> tuple[list[ScopedInput], list[exp.Expression]]:
        """The inputs that are streams, with their tables; and the conditions that are left."""
        streams = [source for source in sources if not source.is_table]
        waiting = [source for source in sources if source.is_table]
        if not streams:
            hint = "a query answers when tuples come: join a stream"
            self.problems.add(sources[0].node, "FROM has tables and no stream", hint)
            return [], where
        inputs = {i.alias: i for s in streams for i in s.inputs}
        self.lookups = {alias: i.lookups for alias, i in inputs.items()}
        conditions = {table.alias: self._conditions(table, where) for table in waiting}
        while found := sorted(self._placeable(waiting, conditions, list(inputs)), key=lambda one: one[0]):
            _, table, owner, keys, used = found[0]
            waiting.remove(table)
            self._place(table, inputs[owner], keys)
            where = [c for c in where if not any(c is u for u in used)]
            if table.outer_on is not None:
                self._refuse_rest([c for c in conditions[table.alias] if not any(c is u for u in used)])
        for table in waiting:
            self._refuse(table, conditions[table.alias])
        with_tables = [
            replace(s, inputs=tuple(replace(i, lookups=self.lookups[i.alias]) for i in s.inputs)) for s in streams
        ]
        return with_tables, [self.resolved(c) for c in where]

    def resolved(self, expr: exp.Expression) -> exp.Expression:
        """With the columns of inputs in the places of those of tables."""

        def stand_in(node: exp.Expression) -> exp.Expression:
            found = self.brought.get((node.text("table"), node.name)) if isinstance(node, exp.Column) else None
            return node if found is None else found.copy()

        return expr.transform(stand_in)

    def _conditions(self, table: ScopedInput, where: list[exp.Expression]) -> list[exp.Expression]:
        if table.outer_on is None:
            return where
        found = [self.scope.expression(c) for c in conjuncts(table.outer_on)]
        self.outer += found
        return found

    def _placeable(
        self, waiting: Sequence[ScopedInput], conditions: Mapping[str, list[exp.Expression]], inputs: list[str]
    ) -> Iterator[tuple[tuple[str, str], ScopedInput, str, tuple[Key, ...], list[exp.Expression]]]:
        """Tables that can be joined by now: what they go by, and the conditions that say so."""
        for table in waiting:
            ties: dict[str, list[tuple[Key, exp.Expression]]] = {}
            for condition in conditions[table.alias]:
                for value, name in self._sides(table, condition):
                    owner = self._owner(value)
                    if owner is not None and self._are_alike(table, value, name):
                        ties.setdefault(owner, []).append(((self.resolved(value), name), condition))
            if ties:
                owner = min(ties, key=inputs.index)
                keys = sorted((key for key, _ in ties[owner]), key=_order)
                text = " ".join(_text(value) + name for value, name in keys)
                name = table.inputs[0].stream
                yield (name, text), table, owner, tuple(keys), [condition for _, condition in ties[owner]]

    def _sides(self, table: ScopedInput, condition: exp.Expression) -> Iterator[Key]:
        """A column of the table and what it is to be equal to, if that is what a condition says."""
        if isinstance(condition, exp.EQ):
            left, right = condition.this, condition.expression
            for own, other in ((left, right), (right, left)):
                if isinstance(own, exp.Column) and own.table == table.alias:
                    yield other, own.name

    def _owner(self, value: exp.Expression) -> str | None:
        """The one input that a value is of."""
        aliases = {c.table for c in self.resolved(value).find_all(exp.Column)}
        return aliases.pop() if len(aliases) == 1 and aliases <= self.lookups.keys() else None

    def _are_alike(self, table: ScopedInput, value: exp.Expression, name: str) -> bool:
        types = self.scope.typer.of(value), self.scope.column_type(table.alias, name)
        return types[0] is types[1] or all(t is not None and t.integral for t in types)

    def _place(self, table: ScopedInput, owner: Input, keys: tuple[Key, ...]) -> None:
        made = self.lookups[owner.alias]
        relation = self.catalog[table.inputs[0].stream]
        taken = {c.name.lower() for c in replace(owner, lookups=made).read(self.catalog).columns}
        prefix = _free(relation.name, taken)
        columns = tuple((c.name, replace(c, name=f"{prefix}.{c.name}")) for c in relation.columns)
        values = tuple((_of_row(value), name) for value, name in keys)
        lookup = Lookup(relation.name, columns, values, table.outer_on is not None)
        self.lookups[owner.alias] = (*made, lookup)
        self.brought |= {(table.alias, name): of_decimal(column(owner.alias, c.name), c.decimal) for name, c in columns}

    def _refuse_rest(self, conditions: Iterable[exp.Expression]) -> None:
        for condition in conditions:
            if not condition.find(Unknown):
                text = self.problems.text(condition)
                hint = "which tuples meet NULL by another condition cannot be said; an inner JOIN takes any condition"
                self.problems.add(condition, f"{_ONLY_EQUAL}, {text} is another condition", hint)

    def _refuse(self, table: ScopedInput, conditions: Iterable[exp.Expression]) -> None:
        if table.columns is None or any(c.find(Unknown) for c in conditions):
            return
        for condition in conditions:
            for value, name in self._sides(table, condition):
                of_value, of_column = self.scope.typer.of(value), self.scope.column_type(table.alias, name)
                if of_value is None:
                    return  # what is wrong with the value is said
                if self._owner(value) is not None:
                    message = f"{self.problems.text(value)} is {of_value.value}, {table.alias}.{name} {of_column.value}"
                    hint = "a table is looked up by values of its own types: let the schema say the same, or use CAST"
                    self.problems.add(condition, message, hint)
                    return
        own = next(iter(table.columns))
        message = f"the table {table.alias} is not tied to a stream by an equality of one of its columns"
        hint = f"with ON b.x = {table.alias}.{own}, x being a column or an expression of one stream, rows are looked up"
        self.problems.add(table.node, message, hint)


def _of_row(value: exp.Expression) -> exp.Expression:
    return value.transform(lambda n: like(n, column(ROW, n.name)) if isinstance(n, exp.Column) else n)


def _text(value: exp.Expression) -> str:
    return repr(_of_row(value))


def _order(key: Key) -> tuple[str, str]:
    return key[1], _text(key[0])


def _free(name: str, taken: set[str]) -> str:
    """What the columns of a table are called after, so that no column of the input is."""
    number, prefix = 1, name
    while any(known.startswith(f"{prefix.lower()}.") for known in taken):
        number += 1
        prefix = f"{name} {number}"
    return prefix
