"""Expressions as sqlglot read them to expressions as the checked tree holds them.

The tree is built anew, so that nothing enters it that is not listed here: parentheses go, columns are resolved,
each construct takes its one form. What has no place is refused and becomes `Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from towpath.lang import decimals
from towpath.lang.arguments import BadArgument, unit_of
from towpath.lang.budget import DEEPEST, Budget, levels
from towpath.lang.durations import NoDuration, length
from towpath.lang.functions import AGGREGATES, CHANGING, SCALARS, Function, case, changing, refusal
from towpath.lang.literals import cast, is_string, moment, moment_example, number, type_of_name, whole_number
from towpath.lang.refusals import refuse_expression
from towpath.lang.times import moved
from towpath.lang.typing import Unknown
from towpath.lang.underline import Problems, mark, span
from towpath.schema import MOST_DIGITS, Type

TEXTS = ("string_agg", "listagg")
Resolve = Callable[[exp.Column], exp.Expression]

_BINARY = (
    *(exp.Mul, exp.Div, exp.Mod, exp.And, exp.Or, exp.DPipe),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
)


class Translator:
    """`resolve` says what a column stands for; `resolve_inside` does so inside an aggregate call.

    `time` gives the event time of a tuple.
    """

    def __init__(
        self,
        problems: Problems,
        budget: Budget,
        resolve: Resolve,
        resolve_inside: Resolve | None = None,
        time: Callable[[], exp.Expression] | None = None,
    ) -> None:
        self._problems = problems
        self._budget = budget
        self._resolve = resolve
        self._resolve_inside = resolve_inside or resolve
        self._time = time or Unknown
        self._depth = 0

    def __call__(self, node: exp.Expr) -> exp.Expression:
        if isinstance(node, exp.Paren):
            return self(node.this)
        if self._depth >= DEEPEST:
            return self._too_deep(node)
        self._budget.spend(node)
        self._depth += 1
        translated = self._one(node)
        self._depth -= 1
        place = span(node)
        if place:
            mark(translated, place)
        return translated

    def _one(self, node: exp.Expr) -> exp.Expression:
        rule = _RULES.get(type(node))
        if rule is None or {name for name, value in node.args.items() if value} - rule.reads:
            return self._refuse(node)
        translated = rule.apply(self, node)
        return exp.Not(this=translated) if node.args.get("negate") else translated

    def _binary(self, node: exp.Expr) -> exp.Expression:
        kind: type[exp.Expression] = type(node)  # type: ignore[assignment]
        return kind(this=self(node.this), expression=self(node.args["expression"]))

    def _sum(self, node: exp.Expr) -> exp.Expression:
        """`+` and `-`: of numbers, or of an INTERVAL behind a timestamp or a date."""
        left, right = node.this.unnest(), node.args["expression"].unnest()
        if isinstance(node, exp.Add) and isinstance(left, exp.Interval):
            left, right = right, left
        if not isinstance(right, exp.Interval):
            return self._binary(node)
        try:
            count, unit = length(right)
        except NoDuration as error:
            return self._wrong(right, str(error))
        return moved(self(left), -count if isinstance(node, exp.Sub) else count, unit)

    def _extract(self, node: exp.Expr) -> exp.Expression:
        return self._built(node, SCALARS["date_part"], [node.this, node.args["expression"]])

    def _refuse(self, node: exp.Expr) -> exp.Expression:
        refuse_expression(node, self._problems)
        return Unknown()

    def _wrong(self, node: exp.Expr, message: str, hint: str = "") -> exp.Expression:
        self._problems.add(node, message, hint)
        return Unknown()

    def _column(self, node: exp.Expr) -> exp.Expression:
        if isinstance(node.this, exp.Star):
            return self._refuse(node.this)
        assert isinstance(node, exp.Column)
        found = self._resolve(node)
        return self._too_deep(node) if self._depth + levels(found) > DEEPEST + 1 else found

    def _too_deep(self, node: exp.Expr) -> exp.Expression:
        hint = "use IN for a long list of values; a name counts with all that it stands for"
        return self._wrong(node, f"nested more than {DEEPEST} levels deep", hint)

    def _literal(self, node: exp.Expr) -> exp.Expression:
        if is_string(node):
            return exp.Literal.string(node.this)
        text = number(node.this, negated=isinstance(node.parent, exp.Neg))
        if text is None:
            return self._wrong(node, f"{node.this[:40]} is not a bigint or double", "quote it if it is a text")
        return exp.Literal.number(text)

    def _boolean(self, node: exp.Expr) -> exp.Expression:
        return exp.Boolean(this=bool(node.this))

    def _null(self, node: exp.Expr) -> exp.Expression:
        return exp.Null()

    def _negation(self, node: exp.Expr) -> exp.Expression:
        return exp.Neg(this=self(node.this))

    def _not(self, node: exp.Expr) -> exp.Expression:
        return exp.Not(this=self(node.this))

    def _is(self, node: exp.Expr) -> exp.Expression:
        value = node.args["expression"]
        if not isinstance(value, exp.Null):
            return self._wrong(node, "IS is supported as IS NULL and IS NOT NULL alone", "write = to compare")
        return exp.Is(this=self(node.this), expression=exp.Null())

    def _between(self, node: exp.Expr) -> exp.Expression:
        if node.args.get("symmetric"):
            return self._wrong(
                node, "BETWEEN SYMMETRIC is not supported", "write BETWEEN least(a, b) AND greatest(a, b)"
            )
        return exp.Between(this=self(node.this), low=self(node.args["low"]), high=self(node.args["high"]))

    def _in(self, node: exp.Expr) -> exp.Expression:
        if not node.expressions:
            return self._wrong(node, "IN needs a list of literals", "IN (SELECT ...) is missing")
        return exp.In(this=self(node.this), expressions=[self(e) for e in node.expressions])

    def _alike(self, node: exp.Expr) -> exp.Expression:
        """IS [NOT] DISTINCT FROM; beside NULL it is IS NULL."""
        sides = [node.this, node.args["expression"]]
        if any(isinstance(side, exp.Null) for side in sides):
            values = [side for side in sides if not isinstance(side, exp.Null)] or sides[:1]
            alike: exp.Expression = exp.Is(this=self(values[0]), expression=exp.Null())
        else:
            alike = exp.NullSafeEQ(this=self(sides[0]), expression=self(sides[1]))
        return exp.Not(this=alike) if isinstance(node, exp.NullSafeNEQ) else alike

    def _rlike(self, node: exp.Expr) -> exp.Expression:
        return self._built(node, SCALARS["regexp_like"], [node.this, node.args["expression"]])

    def _ilike(self, node: exp.Expr) -> exp.Expression:
        pattern = node.args["expression"]
        if not is_string(pattern):
            return self._wrong(pattern, "ILIKE needs a text in quotes")
        return exp.Like(this=exp.Lower(this=self(node.this)), expression=exp.Literal.string(pattern.name.lower()))

    def _like(self, node: exp.Expr) -> exp.Expression:
        pattern = node.args["expression"]
        if not is_string(pattern) and not isinstance(pattern, exp.Escape):
            return self._wrong(pattern, "LIKE needs a text in quotes", "use starts_with(x, y) to compare columns")
        return exp.Like(this=self(node.this), expression=self(pattern))

    def _case(self, node: exp.Expr) -> exp.Expression:
        branches = []
        for branch in node.args["ifs"]:
            # A fresh subject for each branch, since a node has one parent.
            condition = self(branch.this)
            if node.this:
                condition = exp.EQ(this=self(node.this), expression=condition)
                mark(condition, span(branch.this) or (0, 1))
            branches.append((condition, self(branch.args["true"])))
        default = node.args.get("default")
        return case(branches, self(default) if default else None)

    def _cast(self, node: exp.Expr) -> exp.Expression:
        if node.args["to"].this in (exp.DType.DECIMAL,) and not node.args.get("format"):
            return self._decimal(node)
        target = type_of_name(node.args["to"])
        if target is None or node.args.get("format"):
            known = ", ".join([*(t.value for t in Type), "decimal(p,s)"])
            wanted = node.args["to"].sql().lower()  # its place in the text is only that of a length or precision
            return self._wrong(node, f"CAST to {wanted} is not supported", f"the types are {known}")
        value = node.this
        if is_string(value) and target in (Type.TIMESTAMP, Type.DATE):
            return self.moment(value, target)
        return cast(self(value), target)

    def _decimal(self, node: exp.Expr) -> exp.Expression:
        """CAST(x AS DECIMAL(p, s)), and DECIMAL '1.23', which has the digits that are written."""
        digits = [int(p.name) for p in node.args["to"].expressions if p.name.isdecimal()]
        if not digits and is_string(node.this):
            literal = decimals.literal(node.this.name)
            if literal is None:
                hint = f"write up to {MOST_DIGITS} digits, as in DECIMAL '12.50'"
                return self._wrong(node, f"'{node.this.name}' is not a decimal", hint)
            return literal
        if not 1 <= len(digits) <= 2 or not 1 <= digits[0] <= MOST_DIGITS or digits[-1:] > digits[:1]:
            hint = "write DECIMAL(18, 2): 18 digits, the most there can be, 2 of them behind the point"
            return self._wrong(node, "a cast to DECIMAL says how many digits and places there are", hint)
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        return decimals.ToDecimal(this=self(node.this), precision=precision, scale=scale)

    def moment(self, literal: exp.Expr, target: Type) -> exp.Expression:
        """A text as a timestamp or date literal."""
        text = moment(literal.this, target)
        if text is None:
            hint = f"write it as '{moment_example(target)}'"
            return self._wrong(literal, f"'{literal.this}' is not a {target.value}", hint)
        return cast(exp.Literal.string(text), target)

    def _call(self, node: exp.Expr) -> exp.Expression:
        name = node.name
        arguments = list(node.expressions)
        if name.lower() == "position" and len(arguments) == 1 and isinstance(arguments[0], exp.In):
            name, arguments = "strpos", _looked_for(arguments[0])
        if name == "->>" and isinstance(node.parent, exp.DPipe) and node.arg_key == "expression":
            return self._wrong(node, "systems disagree what || and ->> go together with", "put it into parentheses")
        if name.lower() in AGGREGATES:
            return self._aggregate(node, name.lower(), arguments)
        if name.lower() in decimals.FUNCTIONS:
            return self._units(node, name.lower(), arguments)
        function = SCALARS.get(name.lower())
        if function is None:
            return self._wrong(node, *refusal(name))
        if not arguments and name.lower() in CHANGING:
            return self._wrong(node, *changing(name))
        if len(arguments) < function.least or (function.most is not None and len(arguments) > function.most):
            return self._wrong(node, f"{name} takes {function.arity}, got {len(arguments)}")
        return self._built(node, function, arguments)

    def _units(self, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> exp.Expression:
        if name == "unscaled" and len(arguments) == 1:
            return decimals.Unscaled(this=self(arguments[0]))
        places = whole_number(arguments[1]) if name == "scaled" and len(arguments) == 2 else None
        if places is None or not 0 <= places <= MOST_DIGITS:
            return self._wrong(node, f"{name} takes {decimals.FUNCTIONS[name]}")
        return decimals.scaled(self(arguments[0]), places)

    def _built(self, node: exp.Expr, function: Function, arguments: list[exp.Expr]) -> exp.Expression:
        try:
            first = [unit_of(arguments[0])] if function.names_unit else []
            return function.build(first + [self(a) for a in arguments[len(first) :]])
        except BadArgument as error:
            place = arguments[error.place]
            return self._wrong(place if span(place) else node, error.message, error.hint)

    def _filter(self, node: exp.Expr) -> exp.Expression:
        """What the condition is not true for is NULL, which no aggregate counts."""
        call, where = node.this, node.args["expression"]
        if isinstance(call, exp.WithinGroup):
            return self._within_group(call, where.this)
        if not isinstance(call, exp.Anonymous) or call.name.lower() not in AGGREGATES:
            return self._refuse(node)
        return self._aggregate(call, call.name.lower(), list(call.expressions), where.this)

    def _within_group(self, node: exp.Expr, where: exp.Expr | None = None) -> exp.Expression:
        """`percentile_cont(0.5) WITHIN GROUP (ORDER BY x)`, and `listagg(x, ',') WITHIN GROUP (ORDER BY y)`."""
        call = node.this
        if not isinstance(call, exp.Anonymous) or call.name.lower() not in ("percentile_cont", *TEXTS):
            return self._wrong(node, "WITHIN GROUP is not supported here", "it stands behind percentile_cont")
        return self._aggregate(call, call.name.lower(), list(call.expressions), where, node.args["expression"])

    def _aggregate(
        self,
        node: exp.Expr,
        name: str,
        arguments: list[exp.Expr],
        where: exp.Expr | None = None,
        order: exp.Expr | None = None,
    ) -> exp.Expression:
        function = AGGREGATES[name]
        if arguments and isinstance(arguments[-1], exp.Order) and name in TEXTS:
            order = arguments[-1]
            arguments[-1] = order.this
        if not function.least <= len(arguments) <= (function.most or 0):
            hint = "write count(*) to count all tuples" if name == "count" else ""
            return self._wrong(node, f"{name} takes {function.arity}, got {len(arguments)}", hint)
        outer, self._resolve = self._resolve, self._resolve_inside
        try:
            if name == "count" and isinstance(arguments[0], exp.Star):
                return exp.Count(this=self._where(exp.Literal.number(1), where) if where else exp.Star())
            if name == "count" and isinstance(arguments[0], exp.Distinct):
                return self._count_distinct(arguments[0], where)
            values = [self(a) for a in arguments]
            values += [self._time()] if function.by_time else []
            if name in (*TEXTS, "percentile_cont"):
                ordered = self._ordered(node, name, order)
                if ordered is None:
                    return Unknown()
                values += ordered
            values[function.counts] = self._where(values[function.counts], where)
            return function.build(values)
        except BadArgument as error:
            place = arguments[error.place]
            return self._wrong(place if span(place) else node, error.message, error.hint)
        finally:
            self._resolve = outer

    def _ordered(self, node: exp.Expr, name: str, order: exp.Expr | None) -> list[exp.Expression] | None:
        """What an aggregate is ordered by, and that it descends."""
        example = "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)"
        example = f"{name}(x, ', ' ORDER BY y)" if name in TEXTS else example
        if order is None or len(order.expressions) != 1:
            hint = f"write {example}"
            self._wrong(node, f"{name} needs an order by one value", hint)
            return None
        key = order.expressions[0]
        descending = bool(key.args.get("desc"))
        if bool(key.args.get("nulls_first")) is descending:
            self._wrong(key, "NULLS FIRST and NULLS LAST are not supported here", "NULL is smaller than every value")
            return None
        return [self(key.this), *([exp.true()] if descending else [])]

    def _where(self, value: exp.Expression, condition: exp.Expr | None) -> exp.Expression:
        return value if condition is None else case([(self(condition), value)], None)

    def _count_distinct(self, node: exp.Distinct, where: exp.Expr | None) -> exp.Expression:
        if len(node.expressions) != 1:
            return self._wrong(node, f"count(DISTINCT) takes 1 argument, got {len(node.expressions)}")
        return exp.Count(this=exp.Distinct(expressions=[self._where(self(node.expressions[0]), where)]))


def _looked_for(node: exp.In) -> list[exp.Expr]:
    """The two texts of position(x IN text), which reads like a condition."""
    return [node.args.get("field") or exp.Tuple(expressions=node.expressions), node.this]


@dataclass(frozen=True)
class Rule:
    """How a node is translated, and which of its arguments that reads: a node with any other is refused."""

    apply: Callable[[Translator, exp.Expr], exp.Expression]
    reads: frozenset[str]


def _rule(apply: Callable[[Translator, exp.Expr], exp.Expression], reads: str) -> Rule:
    return Rule(apply, frozenset(reads.split()))


_RULES: dict[type[exp.Expr], Rule] = {
    # "safe" and "typed" say how sqlglot's own dialect divides and concatenates; typing.py says how towpath does.
    **dict.fromkeys(_BINARY, _rule(Translator._binary, "this expression negate safe typed")),
    **dict.fromkeys((exp.Add, exp.Sub), _rule(Translator._sum, "this expression negate safe typed")),
    exp.Extract: _rule(Translator._extract, "this expression"),
    exp.Column: _rule(Translator._column, "this table db catalog"),
    exp.Literal: _rule(Translator._literal, "this is_string"),
    exp.Boolean: _rule(Translator._boolean, "this"),
    exp.Null: _rule(Translator._null, ""),
    exp.Neg: _rule(Translator._negation, "this"),
    exp.Not: _rule(Translator._not, "this"),
    exp.Is: _rule(Translator._is, "this expression negate"),
    exp.Between: _rule(Translator._between, "this low high symmetric negate"),
    exp.In: _rule(Translator._in, "this expressions query unnest field negate"),
    exp.Like: _rule(Translator._like, "this expression negate"),
    exp.RegexpLike: _rule(Translator._rlike, "this expression"),
    exp.ILike: _rule(Translator._ilike, "this expression negate"),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _rule(Translator._alike, "this expression negate")),
    exp.Filter: _rule(Translator._filter, "this expression"),
    exp.WithinGroup: _rule(Translator._within_group, "this expression"),
    exp.Case: _rule(Translator._case, "this ifs default"),
    exp.Cast: _rule(Translator._cast, "this to format"),
    exp.Anonymous: _rule(Translator._call, "this expressions"),
}
