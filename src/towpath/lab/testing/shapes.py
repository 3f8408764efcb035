"""Query shapes: SQL with its constants, table aliases and the order of its conditions left open.

Filling one shape several times gives what real workloads are full of: queries that differ in a constant, queries that
are equal, and queries that are equal but for the order of their conditions or the names of their aliases. Shapes that
are rearranged give queries that share all they calculate and put out other columns of it, in another order.

In the texts of a shape `@0`, `@1`.. stand for the aliases of its inputs, and `$int`, `$text`.. for constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from towpath.lab.testing.recording import KEYS, WORDS

ALIASES = (("a", "b", "c", "d", "e"), ("r1", "r2", "r3", "r4", "r5"), ("e", "d", "c", "b", "a"))

CONSTANTS: dict[str, Callable[[Random], str]] = {
    "key": lambda rng: str(rng.randrange(KEYS)),
    "bit": lambda rng: str(rng.randrange(2)),
    "small": lambda rng: str(rng.randint(1, 6)),
    "int": lambda rng: str(rng.randint(0, 9) * 3),
    "double": lambda rng: f"{rng.randint(0, 20) * 6.25}",
    "text": lambda rng: _string(rng.choice(WORDS)),
    "pattern": lambda rng: _string(rng.choice(("red%", "%e%", "_lue", "a\\_b", "%", "%d_", "Red%"))),
    "letter": lambda rng: _string(rng.choice(("r", "re", "B", "x"))),
    "second": lambda rng: _string(f"2026-01-01 00:00:{rng.randrange(60):02}"),
    "day": lambda rng: _string(f"2026-01-0{rng.randint(1, 6)}"),
}


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class InputShape:
    source: str | SelectShape
    window: str = ""  # "[RANGE 2 SECONDS]"
    outer: bool = False  # LEFT JOIN, of a reference table


@dataclass(frozen=True)
class SelectShape:
    items: tuple[str, ...]
    inputs: tuple[InputShape, ...]
    ties: tuple[str, ...] = ()  # one equality per input after the first, with an earlier one
    conditions: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()
    having: tuple[str, ...] = ()
    first: str = ""  # which rows of a window: QUALIFY ..., or ORDER BY ... LIMIT ...
    shown: tuple[int, ...] | None = None  # the numbers of the items that are put out, in order; None: all of them

    def text(self, twist: Random | None, views: list[str]) -> str:
        """The SQL, with constants still open; `twist` varies what does not change the meaning.

        Some SELECTs that it reads are put under `views`, and read by the names v1, v2 and so on.
        """
        aliases = twist.choice(ALIASES) if twist else ALIASES[0]
        written_as_join = twist is not None and len(self.inputs) > 1 and twist.choice((False, True))
        inputs = [self._input(i, aliases[n], twist, views) for n, i in enumerate(self.inputs)]
        conditions = list(self.conditions)
        if written_as_join or any(i.outer for i in self.inputs):
            words = ["LEFT JOIN" if i.outer else "JOIN" for i in self.inputs[1:]]
            joined = [f" {word} {text} ON {tie}" for word, text, tie in zip(words, inputs[1:], self.ties, strict=True)]
            tables = inputs[0] + "".join(joined)
        else:
            tables = ", ".join(inputs)
            conditions = [*self.ties, *conditions]
        if twist:
            twist.shuffle(conditions)
        shown = range(len(self.items)) if self.shown is None else self.shown
        items = ", ".join(f"{self.items[number]} AS c{n}" for n, number in enumerate(shown))
        text = f"SELECT {items} FROM {tables}"
        for word, parts, glue in (
            ("WHERE", conditions, " AND "),
            ("GROUP BY", self.group_by, ", "),
            ("HAVING", self.having, " AND "),
        ):
            text += f" {word} {glue.join(parts)}" if parts else ""
        text += f" {self.first}" if self.first else ""
        return re.sub(r"@(\d)", lambda m: aliases[int(m[1])], text)

    def _input(self, shape: InputShape, alias: str, twist: Random | None, views: list[str]) -> str:
        inner = shape.source
        if isinstance(inner, str):
            source = inner
        else:
            text = inner.text(twist, views)
            named = twist is not None and twist.choice((False, True))
            if named:
                views.append(text)
            source = f"v{len(views)}" if named else f"({text})"
        return f"{source} {shape.window} AS {alias}" if shape.window else f"{source} AS {alias}"


@dataclass(frozen=True)
class Shape:
    """A query: one SELECT or several under UNION ALL."""

    selects: tuple[SelectShape, ...]

    def text(self, constants: int = 0, twist: int = 0) -> str:
        """The SQL for two seeds: equal `constants` give queries of equal meaning; `twist` 0 is the shape as it is."""
        twists = Random(twist) if twist else None
        values = Random(constants)
        views: list[str] = []
        selects = [_fill(select, values).text(twists, views) for select in self.selects]
        before = "".join(f"CREATE VIEW v{n} AS {text};\n" for n, text in enumerate(views, 1))
        return before + "\nUNION ALL\n".join(selects)

    def rearranged(self, rng: Random) -> Shape:
        """The same with its outputs in another order, and sometimes without one of its plain columns."""
        items = self.selects[0].items
        numbers = list(range(len(items)))
        rng.shuffle(numbers)
        plain = [n for n in numbers if re.fullmatch(r"@\d\.\w+", items[n])]
        if plain and len(numbers) > 1 and rng.random() < 0.3:
            numbers.remove(plain[0])
        return Shape(tuple(replace(select, shown=tuple(numbers)) for select in self.selects))


def _fill(select: SelectShape, rng: Random) -> SelectShape:
    """Constants in place, before anything is shuffled."""

    def filled(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(re.sub(r"\$(\w+)", lambda m: CONSTANTS[m[1]](rng), text) for text in texts)

    inputs = tuple(i if isinstance(i.source, str) else replace(i, source=_fill(i.source, rng)) for i in select.inputs)
    return SelectShape(
        filled(select.items),
        inputs,
        select.ties,
        filled(select.conditions),
        filled(select.group_by),
        filled(select.having),
        filled([select.first])[0],
        select.shown,
    )
