"""Fields of structs in a text: `user.id` and `s.user.name.first`.

A field is a column that is called by its path. What stands in front of the first dot is an input, or else the outermost
struct, and all behind it one name: so nobody who reads a text meets a column of more than two parts.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from towpath.lang.underline import mark, span

LAST = "last"  # in the notes of a node: the last of the names that it was written with


def fold(tree: exp.Expr) -> None:
    """Makes two parts of names with more of them, in place."""
    for node in list(tree.find_all(exp.Dot, exp.Column)):
        parts = _parts(node)
        if parts is None or (isinstance(node, exp.Column) and len(parts) < 3):
            continue
        folded = _star(parts[:-1]) if isinstance(parts[-1], exp.Star) else _column(parts)
        mark(folded, span(node) or (0, 1))
        node.replace(folded)


def is_one_of(column: exp.Column, names: Collection[str], own: Collection[str], others: Collection[str] = ()) -> bool:
    """Whether a column of an input is meant, one of `names`. The input is called `own`; all are in lower case."""
    table, name = column.table.lower(), column.name.lower()
    if not table or table in own:
        return name in names
    return table not in others and f"{table}.{name}" in names


def _parts(node: exp.Expr) -> list[exp.Expr] | None:
    """The names from outside to inside, the last may be a star; None of what has a field of something else."""
    if isinstance(node, exp.Column):
        return [node.args[key] for key in ("catalog", "db", "table", "this") if node.args.get(key)]
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier | exp.Star):
        outer = _parts(node.this.unnest())
        return None if outer is None else [*outer, node.expression]
    return None


def _column(parts: list[exp.Expr]) -> exp.Column:
    table, *names = parts
    folded = exp.Column(this=_joined(names), table=table.copy())
    folded.meta[LAST] = parts[-1].name
    return folded


def _star(parts: list[exp.Expr]) -> exp.Column:
    return exp.Column(this=exp.Star(), table=_joined(parts))


def _joined(names: list[exp.Expr]) -> exp.Identifier:
    quoted = any(name.args.get("quoted") for name in names)
    return exp.to_identifier(".".join(name.name for name in names), quoted=quoted)
