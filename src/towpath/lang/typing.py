"""The type of every expression a checked tree may hold, and the closed list of its node types."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from towpath.errors import Mistake, QueryError
from towpath.lang.aggregates import StringAgg
from towpath.lang.decimals import Rescaled, Scaled, TextOfUnits, UnitsOfDouble, UnitsOfText
from towpath.lang.functions import BOOLEAN, FUNCTIONS, INTEGER, MOMENT, NUMBER, ORDERED, STRING, OperandKind, Signature
from towpath.lang.literals import is_constant, is_string, number_type, text_in_quotes, type_of_name, whole_number
from towpath.lang.query import WINDOW, window_column_type
from towpath.lang.show import expression_text
from towpath.schema import COMPUTED_DIGITS, DecimalType, Type

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

ColumnType = Callable[[str, str], Type]  # (alias, column name)
ReportMistake = Callable[[exp.Expression, str, str], None]  # (where, message, hint)
Text = Callable[[exp.Expression], str]  # how a message quotes an expression


def infer(expr: exp.Expression, column_type: ColumnType) -> Type:
    """The type of a checked expression. Raises QueryError with every type mistake in it."""
    problems: list[Mistake] = []
    found = Typer(column_type, lambda _, message, hint: problems.append(Mistake("", message, hint))).of(expr)
    if found is None or problems:
        raise QueryError(f"{expression_text(expr)} has no type", problems)
    return found


class Unknown(exp.Expression):
    """Stands for a part that was refused already, so that it is not refused again for its type."""


# Of operators here, of functions in their table.
SIGNATURES: dict[type[exp.Expr], Signature] = {
    exp.And: Signature((BOOLEAN, BOOLEAN), Type.BOOLEAN),
    exp.Or: Signature((BOOLEAN, BOOLEAN), Type.BOOLEAN),
    exp.Not: Signature((BOOLEAN,), Type.BOOLEAN),
    exp.Like: Signature((STRING, STRING), Type.BOOLEAN),
    exp.Div: Signature((NUMBER, NUMBER), Type.DOUBLE),
    exp.Mod: Signature((INTEGER, INTEGER), Type.BIGINT),
    Rescaled: Signature((INTEGER,), Type.BIGINT),
    UnitsOfText: Signature((STRING,), Type.BIGINT),
    UnitsOfDouble: Signature((NUMBER,), Type.BIGINT),
    TextOfUnits: Signature((INTEGER,), Type.STRING),
    **{f.node: f.signature for f in FUNCTIONS.values() if f.signature is not None},
}

_SPELLING: dict[type[exp.Expr], str] = {
    exp.And: "AND",
    exp.Or: "OR",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Neg: "-",
    exp.DPipe: "|| (concat)",
    exp.Case: "CASE (if)",
}
# Of several names the first.
_NAMES: dict[type[exp.Expr], str] = {function.node: name for name, function in reversed(FUNCTIONS.items())}


def spelling(node: exp.Expr) -> str:
    """The name of an operator or function as users write it."""
    name = _SPELLING.get(type(node)) or _NAMES.get(type(node))
    return name or (node.sql_name().lower() if isinstance(node, exp.Func) else node.key.upper())


def a(type_: Type | DecimalType) -> str:
    return f"{'an' if type_ is Type.INT else 'a'} {type_.value}"


def widest(types: Sequence[Type]) -> Type | None:
    """The one type that holds values of all these; None when there is none."""
    if all(t.numeric for t in types):
        return max(types, key=(Type.INT, Type.BIGINT, Type.DOUBLE).index)
    return types[0] if len(set(types)) == 1 else None


def castable(source: Type, target: Type) -> bool:
    moments = {Type.TIMESTAMP, Type.DATE}
    return (
        source is target
        or Type.STRING in (source, target)
        or {source, target} == moments
        or not {source, target} & moments
    )


class Typer:
    """Gives the type of expressions, reporting mistakes; None is the type of what was reported."""

    def __init__(self, column_type: ColumnType, report: ReportMistake, text: Text = expression_text) -> None:
        self._column_type = column_type
        self._report = report
        self._text = text

    def of(self, node: exp.Expression) -> Type | None:
        if type(node) in SIGNATURES:
            return self._signature(node, SIGNATURES[type(node)])
        rule = _RULES.get(type(node))
        if rule is None:
            self._report(node, f"{self._text(node)} is not supported", "")
            return None
        return rule(self, node)

    def expect(self, node: exp.Expression, kind: OperandKind, by: str) -> Type | None:
        """The type of an operand, reported unless it is of the kind."""
        return self._fitting(node, self.of(node), kind, by)

    def _fitting(self, node: exp.Expression, found: Type | None, kind: OperandKind, by: str) -> Type | None:
        if found is None or found in kind.types:
            return found
        hint = ""
        if kind is BOOLEAN:
            hint = f"write a condition, such as {self._text(node)} IS NOT NULL"
        elif kind.cast and castable(found, kind.cast) and not is_constant(node):
            hint = f"write CAST({self._text(node)} AS {kind.cast.name})"
        self._report(node, f"{by} needs {kind.name}, but {self._text(node)} is {a(found)}", hint)
        return None

    def common(self, node: exp.Expression, operands: Sequence[exp.Expression]) -> Type | None:
        """The type all operands widen to; NULL among them takes the type of the others."""
        typed = [o for o in operands if not isinstance(o, exp.Null)]
        if not typed:
            self._report(node, "at least one value has to be other than NULL", "")
            return None
        types = [self.of(o) for o in typed]
        known = [t for t in types if t]
        if len(known) < len(types):
            return None
        common = widest(known)
        if common is None:
            listed = ", ".join(f"{self._text(o)} is {a(t)}" for o, t in zip(typed, known, strict=True))
            self._report(node, f"{spelling(node)} needs values of one type: {listed}", "make them alike with CAST")
        return common

    def _signature(self, node: exp.Expression, signature: Signature) -> Type:
        operands = [o for o in node.iter_expressions() if isinstance(o, exp.Expression)]
        for operand, kind in zip(operands, signature.arguments, strict=False):
            self.expect(operand, kind, spelling(node))
        return signature.result

    def _arithmetic(self, node: exp.Expression) -> Type | None:
        operands = node.this, node.args["expression"]
        types = [self.of(o) for o in operands]
        if isinstance(node, exp.Sub) and all(t in MOMENT.types for t in types):
            hint = f"write timestampdiff(SECOND, {self._text(operands[1])}, {self._text(operands[0])}), or another unit"
            self._report(node, "lengths of time as values are missing", hint)
            return None
        found = {self._fitting(o, t, NUMBER, spelling(node)) for o, t in zip(operands, types, strict=True)}
        if None in found:
            return None
        return Type.DOUBLE if Type.DOUBLE in found else Type.BIGINT

    def _moved(self, node: exp.Expression) -> Type | None:
        count = node.args["expression"]
        by = "an INTERVAL behind + or -" if is_constant(count) else "timestampadd"
        found = self.expect(node.this, MOMENT, by)
        self.expect(count, INTEGER, "a number of units of time")
        if found is Type.DATE and node.args["unit"].name == "MICROSECOND":
            hint = f"write CAST({self._text(node.this)} AS TIMESTAMP) to have a timestamp"
            self._report(node, "a date is moved by whole days, months and years", hint)
            return None
        return found

    def _difference(self, node: exp.Expression) -> Type:
        for operand in (node.args["expression"], node.this):
            self.expect(operand, MOMENT, "timestampdiff")
        return Type.BIGINT

    def _cut(self, node: exp.Expression) -> Type:
        self.expect(node.this, MOMENT, "date_trunc")
        return Type.TIMESTAMP

    def _negation(self, node: exp.Expression) -> Type | None:
        if whole_number(node) is not None:
            return number_type(node)
        found = self.expect(node.this, NUMBER, "-")
        return Type.BIGINT if found is Type.INT else found

    def _same_number(self, node: exp.Expression) -> Type | None:
        decimals = node.args.get("decimals")
        if decimals is not None and not (isinstance(decimals, exp.Literal) and decimals.this in _DECIMALS):
            self._report(decimals, "round needs a whole number from 0 to 15 as its second argument", "")
        return self.expect(node.this, NUMBER, spelling(node))

    def _sum(self, node: exp.Expression) -> Type | None:
        found = self.expect(node.this, NUMBER, "sum")
        return Type.BIGINT if found is Type.INT else found

    def _extreme(self, node: exp.Expression) -> Type | None:
        return self.expect(node.this, ORDERED, spelling(node))

    def _of_extreme(self, node: exp.Expression) -> Type | None:
        self.expect(node.expression, ORDERED, spelling(node))
        return self.of(node.this)

    def _texts(self, node: exp.Expression) -> Type:
        self.expect(node.this, STRING, spelling(node))
        self.of(node.args["order"])
        return Type.STRING

    def _count(self, node: exp.Expression) -> Type:
        counted = node.this.expressions if isinstance(node.this, exp.Distinct) else [node.this]
        for operand in counted:
            if not isinstance(operand, exp.Star):
                self.of(operand)
        return Type.BIGINT

    def _comparison(self, node: exp.Expression) -> Type:
        operands = [o for o in node.iter_expressions() if isinstance(o, exp.Expression)]
        if any(isinstance(o, exp.Null) for o in operands):
            self._report(node, "a comparison with NULL is never true", "write IS NULL or IS NOT NULL")
        else:
            self._compared(node, operands)
        return Type.BOOLEAN

    def _compared(self, node: exp.Expression, operands: Sequence[exp.Expression]) -> Type | None:
        """The type of the first, which is compared with each of the others."""
        first, *others = operands
        left = self.of(first)
        for other in others:
            right = self.of(other)
            if left and right and widest((left, right)) is None:
                message = f"cannot compare {self._text(first)}, {a(left)}, with {self._text(other)}, {a(right)}"
                self._report(node, message, _alike(first, left, other, right))
        return left

    def _is_null(self, node: exp.Expression) -> Type:
        self.of(node.this)
        return Type.BOOLEAN

    def _case(self, node: exp.Expression) -> Type | None:
        branches = node.args["ifs"]
        for branch in branches:
            self.expect(branch.this, BOOLEAN, "WHEN")
        default = node.args.get("default")
        return self.common(node, [b.args["true"] for b in branches] + ([default] if default else []))

    def _listed(self, node: exp.Expression) -> Type | None:
        return self.common(node, [node.this, *node.expressions])

    def _nullif(self, node: exp.Expression) -> Type | None:
        first, other = node.this, node.args["expression"]
        # The type of each is asked for once: twice would double the work with every level of nesting.
        return self._compared(node, [first] if isinstance(other, exp.Null) else [first, other])

    def _cast(self, node: exp.Expression) -> Type | None:
        target = type_of_name(node.args["to"])
        source = None if isinstance(node.this, exp.Null) else self.of(node.this)
        if source and target and not castable(source, target):
            message = f"{a(source)} cannot be cast to {target.value}"
            self._report(node, message, "cast between numbers, between timestamp and date, or from and to string")
        return target

    def _literal(self, node: exp.Expression) -> Type:
        return Type.STRING if node.args["is_string"] else number_type(node)

    def _boolean(self, node: exp.Expression) -> Type:
        return Type.BOOLEAN

    def _null(self, node: exp.Expression) -> None:
        hint = "NULL may stand in IS NULL, CASE, if, coalesce, nullif and CAST(NULL AS type)"
        self._report(node, "NULL has no type here", hint)

    def _column(self, node: exp.Expression) -> Type | None:
        table = node.text("table")
        return window_column_type(node.name) if table == WINDOW else self._column_type(table, node.name)

    def _scaled(self, node: exp.Expression) -> DecimalType | None:
        found = self.expect(node.this, INTEGER, "scaled")
        return DecimalType(COMPUTED_DIGITS, node.args["scale"]) if found else None

    def _unknown(self, node: exp.Expression) -> None:
        return None


_DECIMALS = frozenset(str(n) for n in range(16))
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.NullSafeEQ)

_RULES: dict[type[exp.Expr], Callable[[Typer, exp.Expression], Any]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), Typer._arithmetic),
    **dict.fromkeys(_COMPARISONS, Typer._comparison),
    **dict.fromkeys((exp.Abs, exp.Round, exp.Sign), Typer._same_number),
    **dict.fromkeys((exp.Min, exp.Max), Typer._extreme),
    **dict.fromkeys((exp.ArgMin, exp.ArgMax), Typer._of_extreme),
    StringAgg: Typer._texts,
    **dict.fromkeys((exp.Coalesce, exp.Least, exp.Greatest), Typer._listed),
    exp.TimestampAdd: Typer._moved,
    exp.TimestampDiff: Typer._difference,
    exp.TimestampTrunc: Typer._cut,
    exp.Neg: Typer._negation,
    exp.Sum: Typer._sum,
    exp.Count: Typer._count,
    exp.Is: Typer._is_null,
    exp.Case: Typer._case,
    exp.Nullif: Typer._nullif,
    exp.Cast: Typer._cast,
    exp.Literal: Typer._literal,
    exp.Boolean: Typer._boolean,
    exp.Null: Typer._null,
    exp.Column: Typer._column,
    Scaled: Typer._scaled,
    Unknown: Typer._unknown,
}

ALLOWED: frozenset[type[exp.Expr]] = (
    frozenset(SIGNATURES)
    | (frozenset(_RULES) - {Scaled, Unknown})
    | {exp.If, exp.Identifier, exp.DataType, exp.Star, exp.Distinct, exp.Var}
)
"""Every node type a checked tree may hold: `If` is a branch of `Case`, `Star` and `Distinct` occur in `Count` alone,
and `Var` is the name of a unit of time."""


def outside(expr: exp.Expression) -> exp.Expr | None:
    """The first node that a checked tree must not hold."""
    return next((node for node in expr.walk() if type(node) not in ALLOWED), None)


def _alike(first: exp.Expression, left: Type, other: exp.Expression, right: Type) -> str:
    """How two values of different types can be compared."""
    for text, type_ in ((first, right), (other, left)):
        if is_string(text) and type_.numeric and _NUMBER.fullmatch(text.name):
            return f"a number has no quotes: {text.name}"
    for number, type_ in ((first, right), (other, left)):
        if isinstance(number, exp.Literal) and not number.is_string and type_ is Type.STRING:
            return f"a text is in single quotes: {text_in_quotes(number.name)}"
    return "make them alike with CAST"
