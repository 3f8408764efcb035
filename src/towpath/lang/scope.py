"""What names mean inside one SELECT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from towpath.lang.budget import Budget
from towpath.lang.decimals import lowered
from towpath.lang.fields import LAST
from towpath.lang.functions import CHANGING, changing, did_you_mean
from towpath.lang.literals import is_string, text_in_quotes
from towpath.lang.query import WINDOW, Input
from towpath.lang.translate import Resolve, Translator
from towpath.lang.typing import Typer, Unknown
from towpath.lang.underline import Problems, mark, span
from towpath.schema import Catalog, Type

WINDOW_COLUMNS = ("window_start", "window_end")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.NullSafeEQ)


@dataclass(frozen=True)
class ScopedInput:
    """One input of FROM: a stream, or a derived table (then `inputs` are its streams)."""

    node: exp.Expr
    alias: str
    columns: Mapping[str, exp.Expression] | None  # what each name stands for; None after an unknown stream
    inputs: tuple[Input, ...]
    where: tuple[exp.Expression, ...] = ()
    derived: bool = False
    hidden: frozenset[str] = frozenset()  # columns that * does not stand for
    range_us: int | None = None
    slide_us: int | None = None
    is_session: bool = False  # a gap of range_us ends its windows
    is_table: bool = False
    outer_on: exp.Expr | None = None  # of a table that is the right side of a LEFT JOIN: its condition


def column(alias: str, name: str) -> exp.Column:
    """A column of a checked tree. Always quoted, so that equal columns are equal trees and any name prints safely."""
    return exp.column(name, table=alias, quoted=True)


def lookup(name: str, known: Iterable[str]) -> str | None:
    """The spelling of a name that is known in another case."""
    names = list(known)
    if name in names:
        return name
    alike = [k for k in names if k.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


class Scope:
    """The columns that FROM brings in; turns raw expressions into checked ones."""

    def __init__(self, sources: list[ScopedInput], catalog: Catalog, problems: Problems, budget: Budget) -> None:
        self.sources = sources
        self._streams = {i.alias: i.read(catalog) for s in sources for i in s.inputs}
        self._problems = problems
        self.budget = budget
        self.typer = Typer(self.column_type, problems.add, problems.text)
        self._quiet = Typer(self.column_type, lambda *_: None)

    def column_type(self, alias: str, name: str) -> Type:
        found = self._streams[alias].column(name)
        assert found, f"{alias}.{name} was resolved before"
        return found.type

    def spelling(self, node: exp.Column) -> str | None:
        """The column's name in the spelling of its stream; of a field of a struct its own, without those outside."""
        name = next((name for _, name in self._meant(node)), None)
        last = node.meta.get(LAST, node.name)
        return name and (name[-len(last) :] if name.lower().endswith(f".{last.lower()}") else name)

    def expression(
        self, raw: exp.Expr, names: Mapping[str, exp.Expression] | None = None, last: bool = False
    ) -> exp.Expression:
        """A checked expression. `names` (lower case) come before the columns, or after them (`last`)."""
        translate = Translator(self._problems, self.budget, self._resolver(names or {}, last), self.resolve, self._time)
        translated = lowered(translate(raw), self._quiet.of, self._problems.add)
        self._read_moments(translated, translate)
        return translated

    def _time(self) -> exp.Expression:
        """The event time of a tuple, or of a combination of several."""
        inputs = [i for source in self.sources if not source.is_table for i in source.inputs]
        if not inputs:
            return Unknown()
        times = [column(i.alias, self._streams[i.alias].time) for i in inputs]
        return times[0] if len(times) == 1 else exp.Greatest(this=times[0], expressions=times[1:], ignore_nulls=True)

    def condition(
        self, raw: exp.Expr | None, names: Mapping[str, exp.Expression] | None = None
    ) -> list[exp.Expression]:
        """The conjuncts of a condition; BETWEEN as two of them."""
        found: list[exp.Expression] = []
        for part in conjuncts(raw):
            checked = self.expression(part, names)
            if isinstance(checked, exp.Between):
                low = exp.GTE(this=self.budget.copied(checked.this, part), expression=checked.args["low"])
                high = exp.LTE(this=checked.this, expression=checked.args["high"])
                for half in (low, high):
                    mark(half, span(part) or (0, 1))
                found += [low, high]
            else:
                found.append(checked)
        return found

    def star(self, alias: str | None, node: exp.Expr) -> list[tuple[str, exp.Expression]]:
        """The columns `*`, `alias.*` or `struct.*` stands for; those of a struct are called like its fields."""
        source = alias and self._input(alias)
        if alias is None or source:
            chosen = [source] if source else self.sources
            meant = [(name, e) for s in chosen for name, e in (s.columns or {}).items() if name not in s.hidden]
        else:
            meant = self._fields(alias, node)
        found = [(name, self.budget.copied(e, node)) for name, e in meant]
        for _, e in found:
            mark(e, span(node) or (0, 1))
        return found

    def _fields(self, struct: str, node: exp.Expr) -> list[tuple[str, exp.Expression]]:
        """Of a struct, with its input in front or not."""
        found = [
            (source, [(name[len(stem) :], e) for name, e in (source.columns or {}).items() if _begins(name, stem)])
            for source in self.sources
            for stem in {f"{struct}.", f"{_without(source.alias, struct)}."}
        ]
        holding = [(source, fields) for source, fields in found if fields]
        if not holding:
            self._unknown_alias(struct, node)
        elif len(holding) > 1:
            where = " and ".join(source.alias for source, _ in holding)
            hint = "write " + " or ".join(f"{source.alias}.{struct}.*" for source, _ in holding)
            self._problems.add(node, f"{struct} is a struct of {where}", hint)
        return holding[0][1] if len(holding) == 1 else []

    def _resolver(self, names: Mapping[str, exp.Expression], last: bool) -> Resolve:
        def resolve(node: exp.Column) -> exp.Expression:
            known = names.get(node.name.lower()) if not node.table else None
            if known is None or (last and self._meant(node)):
                return self.resolve(node)
            return self.budget.copied(known, node)

        return resolve

    def resolve(self, node: exp.Column) -> exp.Expression:
        found = self._meant(node)
        if len(found) > 1:
            where = " and ".join(source.alias for source, _ in found)
            hint = "write " + " or ".join(f"{source.alias}.{name}" for source, name in found)
            self._problems.add(node, f"{_name(node)} is a column of {where}", hint)
            return Unknown()
        if found:
            source, name = found[0]
            assert source.columns is not None
            return self.budget.copied(source.columns[name], node)
        if not node.table and node.name.lower() in WINDOW_COLUMNS:
            return column(WINDOW, node.name.lower())
        if node.table and (own := self._input(node.table)):
            return self._unknown_column(node, [own])
        if node.table and not any(_begins(name, f"{node.table}.") for name in self._known()):
            return self._unknown_alias(node.table, node)
        return self._unknown_column(node, self.sources)

    def _meant(self, node: exp.Column) -> list[tuple[ScopedInput, str]]:
        """What a name can mean: in front of a dot stands an input, or else a struct."""
        source = self._input(node.table) if node.table else None
        name = lookup(node.name, source.columns or ()) if source else None
        return [(source, name)] if source and name else self._candidates(_name(node))

    def _input(self, alias: str) -> ScopedInput | None:
        return next((s for s in self.sources if s.alias.lower() == alias.lower()), None)

    def _known(self) -> list[str]:
        return [name for source in self.sources for name in source.columns or ()]

    def _candidates(self, name: str) -> list[tuple[ScopedInput, str]]:
        found = [(source, lookup(name, source.columns or ())) for source in self.sources]
        return [(source, spelled) for source, spelled in found if spelled]

    def _unknown_alias(self, alias: str, node: exp.Expr) -> exp.Expression:
        if any(s.columns is None and not s.alias for s in self.sources):
            return Unknown()
        known = [s.alias for s in self.sources]
        structs = {name.partition(".")[0] for name in self._known() if "." in name}
        hint = did_you_mean(alias, [*known, *structs]) or f"the inputs are {', '.join(known)}"
        self._problems.add(node, f"{alias} is not an input of this SELECT", hint)
        return Unknown()

    def _unknown_column(self, node: exp.Column, among: list[ScopedInput]) -> exp.Expression:
        # After an unknown stream nobody can know whether the column exists.
        if any(s.columns is None for s in among):
            return Unknown()
        if not node.table and node.name.lower() in CHANGING:
            self._problems.add(node, *changing(node.name))
            return Unknown()
        known = [name for s in among for name in s.columns or ()]
        where = " or ".join(s.alias for s in among if s.alias) or "the derived table"
        wanted = node.name if len(among) == 1 and among[0].alias.lower() == node.table.lower() else _name(node)
        if fields := [name for name in known if _begins(name, f"{wanted}.")]:
            hint = f"name a field: {', '.join(fields)}; in SELECT {wanted}.* stands for all"
            self._problems.add(node, f"{wanted} is a struct, and has no value of its own", hint)
            return Unknown()
        hint = did_you_mean(wanted, known) or f"the columns are {', '.join(known)}"
        if node.this.args.get("quoted") and not did_you_mean(node.name, known):
            hint = f"a text is in single quotes: {text_in_quotes(node.name)}; double quotes are for names"
        self._problems.add(node, f"{wanted} is not a column of {where}", hint)
        return Unknown()

    def _read_moments(self, expr: exp.Expression, translate: Translator) -> None:
        """Texts that are compared with a timestamp or a date become literals of that type."""
        for node in list(expr.find_all(*_COMPARISONS)):
            operands = [o for o in node.iter_expressions() if isinstance(o, exp.Expression)]
            texts = [o for o in operands if is_string(o)]
            types = {self._quiet.of(o) for o in operands if not is_string(o)} if texts else set()
            target = types.pop() if len(types) == 1 else None
            if target in (Type.TIMESTAMP, Type.DATE):
                for text in texts:
                    text.replace(translate.moment(text, target))


def _name(node: exp.Column) -> str:
    """As a struct's field is called."""
    return f"{node.table}.{node.name}" if node.table else str(node.name)


def _begins(name: str, stem: str) -> bool:
    return name.lower().startswith(stem.lower())


def _without(alias: str, name: str) -> str:
    return name[len(alias) + 1 :] if _begins(name, f"{alias}.") else name


def conjuncts(raw: exp.Expr | None) -> list[exp.Expr]:
    """Split at AND, without recursion: a WHERE may have hundreds of them."""
    found: list[exp.Expr] = []
    waiting = [raw] if raw else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Paren):
            waiting.append(node.this)
        elif isinstance(node, exp.And):
            waiting += [node.args["expression"], node.this]
        else:
            found.append(node)
    return found


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """The inputs of FROM, as they were read."""
    start = select.args.get("from_")
    return [start.this, *(join.this for join in select.args.get("joins") or [])] if start else []
