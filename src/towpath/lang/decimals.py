"""DECIMAL: numbers with a fixed number of places, which are calculated as whole numbers of units.

A decimal of scale 2 is a BIGINT of hundredths. It is one in streams, in every plan and in results, so that its
arithmetic is that of integers: exact, the same in every engine, and NULL where it leaves the range. Only the text of a
query knows of decimals: each one is a `Scaled` of its units, and what is calculated of decimals is rewritten here into
what is calculated of their units.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from sqlglot import exp

from towpath.lang.aggregates import StringAgg
from towpath.lang.functions import case
from towpath.lang.literals import cast, type_of_name
from towpath.lang.underline import mark, span
from towpath.schema import INTEGERS, MOST_DIGITS, DecimalType, Type

FUNCTIONS = {"scaled": "an integer and a number of places from 0 to 18", "unscaled": "a decimal"}
PLACES = "places"  # in the notes of a column: it stands for units of a decimal, of so many places

TypeOf = Callable[[exp.Expression], Type | DecimalType | None]
Report = Callable[[exp.Expression, str, str], None]
Units = tuple[exp.Expression, int]  # and the places of each


class Scaled(exp.Expression):
    """A decimal: `this` has its units of 10^-scale."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "scale": True}

    @property
    def scale(self) -> int:
        return int(self.args["scale"])


class Unscaled(exp.Expression):
    """The units of a decimal, as a BIGINT."""


class Rescaled(exp.Expression, exp.Func):
    """Units of 10^-scale as units of 10^-places: rounded, halves away from zero, or cut. NULL of more than `digits`
    digits, of which 0 are any number."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "scale": True, "places": True, "digits": True, "cut": True}


class UnitsOfText(exp.Expression, exp.Func):
    """The units of 10^-places that a text is; NULL if it is no number, or has more digits."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "places": True, "digits": True}


class UnitsOfDouble(exp.Expression, exp.Func):
    """The units of 10^-places of the decimal number that a double is shown as; NULL if it has more digits."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "places": True, "digits": True}


class TextOfUnits(exp.Expression, exp.Func):
    """Units of 10^-scale as a text, with all places."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "scale": True}


CONVERSIONS = (Rescaled, UnitsOfText, UnitsOfDouble, TextOfUnits)


class ToDecimal(exp.Expression):
    """A cast to a decimal of so many digits and places."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "precision": True, "scale": True}


def scaled(units: exp.Expression, scale: int) -> Scaled:
    return Scaled(this=units, scale=scale)


def literal(text: str) -> Scaled | None:
    """DECIMAL '1.23'."""
    match = re.fullmatch(r"\s*([-+]?\d{1,18}(?:\.\d{1,18})?)\s*", text, re.ASCII)
    number = decimal.Decimal(match[1]) if match else None
    if number is None or len(number.as_tuple().digits) > MOST_DIGITS:
        return None
    scale = -int(number.as_tuple().exponent)
    return scaled(_number(int(number.scaleb(scale))), scale)


def of_decimal(column: exp.Column, decimal_: DecimalType | None) -> exp.Column:
    """A column of units, if it is that of a decimal."""
    if decimal_ is not None:
        column.meta[PLACES] = decimal_.scale
    return column


def column_units(column: exp.Column, decimal_: DecimalType | None) -> exp.Expression:
    """A column as queries name it."""
    units = of_decimal(column, decimal_)
    return units if decimal_ is None else scaled(units, decimal_.scale)


def like(old: exp.Expression, new: exp.Column) -> exp.Column:
    """A column under another name: of a decimal, if the old one is."""
    if PLACES in old.meta:
        new.meta[PLACES] = old.meta[PLACES]
    return new


def units_of(value: exp.Expression) -> exp.Expression:
    """A value as it is calculated."""
    return value.this if isinstance(value, Scaled) else value


def lowered(root: exp.Expression, type_of: TypeOf, report: Report) -> exp.Expression:
    """The expression with decimals at its top alone, as far as they can be calculated: what else is left of them has no
    place where it stands, and its type says so."""
    if not root.find(Scaled, ToDecimal, Unscaled):
        return root
    lower = _Lowering(type_of, report)
    return lower(root)


class _Lowering:
    def __init__(self, type_of: TypeOf, report: Report) -> None:
        self.type_of = type_of
        self.report = report

    def __call__(self, node: exp.Expression) -> exp.Expression:
        for name, value in list(node.args.items()):
            if isinstance(value, list):
                node.set(name, [self(v) if isinstance(v, exp.Expression) else v for v in value])
            elif isinstance(value, exp.Expression):
                node.set(name, self(value))
        rule = _RULES.get(type(node))
        made = rule(self, node) if rule else node
        if made is not node:
            for part in made.walk():
                if part.meta.get("start") is None:
                    mark(part, span(node) or (0, 1))
        return made

    def units(self, node: exp.Expression) -> Units | None:
        """An exact number: of a decimal, an integer, or a literal."""
        if isinstance(node, Scaled):
            return node.this, node.scale
        literal = _literal(node)
        if literal is not None:
            return literal
        found = None if isinstance(node, exp.Null) else self.type_of(node)
        return (node, 0) if isinstance(found, Type) and found.integral else None

    def common(self, nodes: Sequence[exp.Expression]) -> tuple[list[exp.Expression], int | None] | None:
        """The units of several in the same places. Without places they are doubles, if one of them is.

        None if there is no decimal among them, or something that is no number.
        """
        if not any(isinstance(node, Scaled) for node in nodes):
            return None
        given = [None if isinstance(node, exp.Null) else self.units(node) for node in nodes]
        exact = [units for units in given if units is not None]
        if all(u is not None or isinstance(n, exp.Null) for n, u in zip(nodes, given, strict=True)):
            scale = max(places for _, places in exact)
            return [n if u is None else at_scale(*u, scale) for n, u in zip(nodes, given, strict=True)], scale
        others = [n for n, u in zip(nodes, given, strict=True) if u is None and not isinstance(n, exp.Null)]
        if all(self.type_of(other) is Type.DOUBLE for other in others):
            return [as_double(node) for node in nodes], None
        return None

    # Arithmetic

    def sum_(self, node: exp.Expression) -> exp.Expression:
        found = self.common([node.this, node.args["expression"]])
        if found is None:
            return node
        (left, right), scale = found
        made = type(node)(this=left, expression=right)
        return made if scale is None else scaled(made, scale)

    def product(self, node: exp.Expression) -> exp.Expression:
        sides = [node.this, node.args["expression"]]
        found = self.common(sides)
        if found is None or found[1] is None:
            return node if found is None else exp.Mul(this=found[0][0], expression=found[0][1])
        (left, one), (right, other) = (u for side in sides if (u := self.units(side)) is not None)
        if one + other > MOST_DIGITS:
            message = f"the product has {one + other} places, at most {MOST_DIGITS} are possible"
            self.report(node, message, "make a factor one of fewer places with CAST")
            return scaled(cast(exp.Null(), Type.BIGINT), 0)
        return scaled(exp.Mul(this=left, expression=right), one + other)

    def quotient(self, node: exp.Expression) -> exp.Expression:
        return exp.Div(this=as_double(node.this), expression=as_double(node.expression))

    def same(self, node: exp.Expression) -> exp.Expression:
        """-x, abs(x), min(x), max(x), sum(x)."""
        if not isinstance(node.this, Scaled):
            return node
        inner, scale = node.this.this, node.this.scale
        literal = _literal(inner) if isinstance(node, exp.Neg) else None
        return scaled(type(node)(this=inner) if literal is None else _number(-int(_text(literal[0]))), scale)

    def average(self, node: exp.Expression) -> exp.Expression:
        if not isinstance(node.this, Scaled):
            return node
        return exp.Div(this=exp.Avg(this=node.this.this), expression=_number(10**node.this.scale))

    def deviation(self, node: exp.Expression) -> exp.Expression:
        return exp.StddevSamp(this=as_double(node.this))

    def quantile(self, node: exp.Expression) -> exp.Expression:
        return exp.Quantile(this=as_double(node.this), quantile=node.args["quantile"])

    def of_extreme(self, node: exp.Expression) -> exp.Expression:
        """max_by(x, y), first(x) and the like."""
        made = type(node)(this=units_of(node.this), expression=units_of(node.expression))
        return scaled(made, node.this.scale) if isinstance(node.this, Scaled) else made

    def texts(self, node: exp.Expression) -> exp.Expression:
        node.set("order", units_of(node.args["order"]))
        return node

    def count(self, node: exp.Expression) -> exp.Expression:
        if isinstance(node.this, exp.Distinct):
            return exp.Count(this=exp.Distinct(expressions=[units_of(e) for e in node.this.expressions]))
        return exp.Count(this=units_of(node.this))

    def rounded(self, node: exp.Expression) -> exp.Expression:
        decimals = node.args.get("decimals")
        places = 0 if decimals is None else int(decimals.name) if decimals.name.isdecimal() else None
        if not isinstance(node.this, Scaled) or places is None:
            return node
        return node.this if places >= node.this.scale else scaled(_rescaled(node.this, places), places)

    # Comparisons and choices

    def compared(self, node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.In):
            found = self.common([node.this, *node.expressions])
            return node if found is None else exp.In(this=found[0][0], expressions=found[0][1:])
        if isinstance(node, exp.Between):
            found = self.common([node.this, node.args["low"], node.args["high"]])
            if found is None:
                return node
            return exp.Between(this=found[0][0], low=found[0][1], high=found[0][2])
        found = self.common([node.this, node.args["expression"]])
        return node if found is None else type(node)(this=found[0][0], expression=found[0][1])

    def is_null(self, node: exp.Expression) -> exp.Expression:
        return exp.Is(this=units_of(node.this), expression=exp.Null())

    def listed(self, node: exp.Expression) -> exp.Expression:
        found = self.common([node.this, *node.expressions])
        if found is None:
            return node
        others = {k: v for k, v in node.args.items() if k not in ("this", "expressions")}
        return _chosen(type(node)(this=found[0][0], expressions=found[0][1:], **others), found[1])

    def nullif(self, node: exp.Expression) -> exp.Expression:
        found = self.common([node.this, node.args["expression"]])
        return node if found is None else _chosen(exp.Nullif(this=found[0][0], expression=found[0][1]), found[1])

    def case(self, node: exp.Expression) -> exp.Expression:
        branches, default = node.args["ifs"], node.args.get("default")
        found = self.common([branch.args["true"] for branch in branches] + ([default] if default else []))
        if found is None:
            return node
        values = found[0]
        conditions = [branch.this for branch in branches]
        made = case(zip(conditions, values, strict=False), values[len(conditions)] if default else None)
        return _chosen(made, found[1])

    # Casts

    def cast(self, node: exp.Expression) -> exp.Expression:
        if not isinstance(node.this, Scaled):
            return node
        match type_of_name(node.args["to"]):
            case Type.DOUBLE:
                return as_double(node.this)
            case Type.STRING:
                return TextOfUnits(this=node.this.this, scale=node.this.scale)
            case Type.INT | Type.BIGINT as target:
                units = _rescaled(node.this, 0, cut=True)
                return units if target is Type.BIGINT else cast(units, target)
        return node

    def to_decimal(self, node: exp.Expression) -> exp.Expression:
        precision, scale = int(node.args["precision"]), int(node.args["scale"])
        units = self.units(node.this)
        if isinstance(node.this, exp.Null):
            return scaled(cast(exp.Null(), Type.BIGINT), scale)
        if units is not None:
            return scaled(_rescaled(scaled(*units), scale, precision), scale)
        found = self.type_of(node.this)
        if found is Type.STRING:
            return scaled(UnitsOfText(this=node.this, places=scale, digits=precision), scale)
        if found is Type.DOUBLE:
            return scaled(UnitsOfDouble(this=node.this, places=scale, digits=precision), scale)
        what = f"a {found.value}" if found else "this"
        self.report(node, f"{what} cannot be cast to decimal({precision},{scale})", "")
        return scaled(cast(exp.Null(), Type.BIGINT), scale)

    def unscaled(self, node: exp.Expression) -> exp.Expression:
        if isinstance(node.this, Scaled):
            return node.this.this
        self.report(node, "unscaled needs a decimal", "it gives the units of one: 150 of 1.50")
        return node.this

    def made(self, node: exp.Expression) -> exp.Expression:
        """scaled(n, places), or a decimal that stays one."""
        if isinstance(node.this, Scaled):
            self.report(node, "scaled needs an integer, but this is a decimal already", "CAST gives it other places")
            return node.this
        return node


def at_scale(units: exp.Expression, places: int, scale: int) -> exp.Expression:
    """Units of more places."""
    if places == scale:
        return units
    literal = _literal(units)
    if literal is not None:
        more = int(_text(units)) * 10 ** (scale - places)
        if more in INTEGERS[Type.BIGINT]:
            return _number(more)
    return exp.Mul(this=units, expression=_number(10 ** (scale - places)))


def as_double(node: exp.Expression) -> exp.Expression:
    if not isinstance(node, Scaled):
        return node
    return exp.Div(this=cast(node.this.copy(), Type.DOUBLE), expression=_number(10**node.scale))


def _chosen(made: exp.Expression, scale: int | None) -> exp.Expression:
    return made if scale is None else scaled(made, scale)


def _literal(node: exp.Expression) -> Units | None:
    """A number as it is written, if it is one of few enough digits."""
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or inner.is_string:
        return None
    number = decimal.Decimal(_text(node))
    scale = max(0, -int(number.as_tuple().exponent))
    units = int(number.scaleb(scale, decimal.Context(prec=400)))
    return (_number(units), scale) if scale <= MOST_DIGITS and units in INTEGERS[Type.BIGINT] else None


def _text(node: exp.Expression) -> str:
    return f"-{node.this.name}" if isinstance(node, exp.Neg) else node.name


def _number(value: int) -> exp.Expression:
    literal = exp.Literal.number(str(abs(value)))
    return exp.Neg(this=literal) if value < 0 else literal


def _rescaled(value: Scaled, scale: int, digits: int = 0, *, cut: bool = False) -> exp.Expression:
    """The units in other places, and NULL of more digits, if those are bounded."""
    if value.scale == scale and not digits:
        return value.this
    return Rescaled(this=value.this, scale=value.scale, places=scale, digits=digits, cut=cut)


_Rule = Callable[[_Lowering, exp.Expression], exp.Expression]
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.Between, exp.In)
_RULES: dict[type[exp.Expr], _Rule] = {
    **dict.fromkeys((exp.Add, exp.Sub), _Lowering.sum_),
    exp.Mul: _Lowering.product,
    exp.Div: _Lowering.quotient,
    **dict.fromkeys((exp.Neg, exp.Abs, exp.Min, exp.Max, exp.Sum), _Lowering.same),
    exp.Avg: _Lowering.average,
    exp.StddevSamp: _Lowering.deviation,
    exp.Quantile: _Lowering.quantile,
    **dict.fromkeys((exp.ArgMax, exp.ArgMin), _Lowering.of_extreme),
    StringAgg: _Lowering.texts,
    exp.Count: _Lowering.count,
    exp.Round: _Lowering.rounded,
    **dict.fromkeys(_COMPARISONS, _Lowering.compared),
    exp.Is: _Lowering.is_null,
    **dict.fromkeys((exp.Coalesce, exp.Least, exp.Greatest), _Lowering.listed),
    exp.Nullif: _Lowering.nullif,
    exp.Case: _Lowering.case,
    exp.Cast: _Lowering.cast,
    ToDecimal: _Lowering.to_decimal,
    Unscaled: _Lowering.unscaled,
    Scaled: _Lowering.made,
}
