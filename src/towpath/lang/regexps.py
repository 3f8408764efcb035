"""Regular expressions: those that Java, RE2 and Rust understand alike, and that take bounded time in all of them.

Java searches by trying: with the wrong pattern it takes longer than anybody waits, or has no room left for its calls.
So what is repeated is a single character, and `_Tail` bounds how often a place of the text can be tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce

LONGEST_PATTERN = 500
LONGEST_TEXT = 4_000  # characters: of a longer text nothing is known, since the time may be that of its square
MOST_REPEATED = 100
MOST_PLACES = 500  # of all repetitions together; Rust bounds the size of what it makes of a pattern
MOST_WAYS = 100  # through the alternatives
STEEPEST = 2  # the time is at most that of the text's length to this power
PATTERNS_KEPT = 4_096

ASCII = frozenset(map(chr, range(128)))
DIGITS = frozenset("0123456789")
WORD = frozenset(c for c in ASCII if c.isalnum()) | {"_"}
_CLASSES = {"d": DIGITS, "w": WORD}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPES = {
    "\\": "some systems read two backslashes in quotes as one",
    **dict.fromkeys("sS", "systems differ in which blanks they stand for; list them, such as [ \\t\\n]"),
    **dict.fromkeys("bB", "systems differ in what a word is"),
    **dict.fromkeys("123456789", "a pattern that refers to what it has found takes time without bound"),
    **dict.fromkeys("pP", "systems know different classes of characters"),
    "Z": "systems differ in it; $ is the end of the text",
}
_REPEATED_GROUP = "only ? may stand behind a group: more takes time, or room, without bound"


class BadPattern(Exception):
    """A regular expression that is not read, with the reason."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class _Set:
    """Some characters: of ASCII by name, of all others those that are named, or all (None)."""

    ascii: frozenset[str] = frozenset()
    others: frozenset[str] | None = frozenset()

    def __or__(self, other: _Set) -> _Set:
        others = None if self.others is None or other.others is None else self.others | other.others
        return _Set(self.ascii | other.ascii, others)

    def meets(self, other: _Set) -> bool:
        if self.ascii & other.ascii:
            return True
        if self.others is None or other.others is None:
            return self.others != frozenset() and other.others != frozenset()
        return bool(self.others & other.others)

    @property
    def text(self) -> str:
        if self.others is None:
            return f"[^{_listed(ASCII - self.ascii)}]" if self.ascii < ASCII else r"[^\x{0}]"
        known = self.ascii | self.others
        return _exactly(next(iter(known))) if len(known) == 1 else f"[{_listed(known)}]"


def _exactly(character: str) -> str:
    return character if character.isascii() and character.isalnum() else f"\\x{{{ord(character):X}}}"


def _listed(characters: Iterable[str]) -> str:
    codes = sorted(map(ord, characters))
    begins = [c for c in codes if c - 1 not in codes]
    ends = [c for c in codes if c + 1 not in codes]
    return "".join(
        _exactly(chr(a)) + (f"-{_exactly(chr(b))}" if b > a else "") for a, b in zip(begins, ends, strict=True)
    )


@dataclass(frozen=True)
class _Tail:
    """What is known of a match from some place of the pattern on."""

    first: _Set  # the characters that it can begin with
    degree: int  # how the time of one try grows with the text
    sure: bool  # it cannot fail


@dataclass(frozen=True)
class _Char:
    set: _Set
    least: int = 1
    most: int | None = 1

    @property
    def text(self) -> str:
        return self.set.text + _times(self.least, self.most)

    @property
    def shortest(self) -> int:
        return self.least

    def before(self, tail: _Tail) -> _Tail:
        if self.least == self.most:
            return _Tail(self.set, tail.degree, False)
        # What follows begins with another character than what is repeated: then giving some back cannot help.
        certain = not self.set.meets(tail.first)
        degree = 0 if tail.sure else max(1, tail.degree) if certain else 1 + tail.degree
        return _Tail(self.set if self.least else self.set | tail.first, degree, not self.least and tail.sure)


def _times(least: int, most: int | None) -> str:
    known = {(1, 1): "", (0, None): "*", (1, None): "+", (0, 1): "?"}
    counted = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    return known.get((least, most), counted)


@dataclass(frozen=True)
class _Edge:
    """The beginning or the end of the text."""

    text: str
    shortest: int = 0

    def before(self, tail: _Tail) -> _Tail:
        return _Tail(_Set() if self.text == r"\z" else tail.first, tail.degree, False)


@dataclass(frozen=True)
class _Group:
    choices: tuple[tuple[_Part, ...], ...]
    number: int = 0  # 0: it is not captured
    optional: bool = False

    @property
    def text(self) -> str:
        inner = "|".join("".join(part.text for part in choice) for choice in self.choices)
        return f"({'' if self.number else '?:'}{inner}){'?' if self.optional else ''}"

    @property
    def shortest(self) -> int:
        return 0 if self.optional else min(sum(part.shortest for part in choice) for choice in self.choices)

    @property
    def ways(self) -> int:
        inner = (_product(p.ways for p in choice if isinstance(p, _Group)) for choice in self.choices)
        return sum(inner) + self.optional

    def before(self, tail: _Tail) -> _Tail:
        tails = [_before(choice, tail) for choice in self.choices] + ([tail] if self.optional else [])
        first = reduce(lambda a, b: a | b, (t.first for t in tails))
        return _Tail(first, max(t.degree for t in tails), any(t.sure for t in tails))

    def always(self) -> Iterator[int]:
        """The numbers of the groups in it that every match has."""
        if self.optional:
            return
        if self.number:
            yield self.number
        if len(self.choices) == 1:
            for part in self.choices[0]:
                if isinstance(part, _Group):
                    yield from part.always()


_Part = _Char | _Edge | _Group


def _product(numbers: Iterable[int]) -> int:
    return reduce(lambda a, b: a * b, numbers, 1)


def _before(parts: tuple[_Part, ...], tail: _Tail) -> _Tail:
    for part in reversed(parts):
        tail = part.before(tail)
    return tail


@dataclass(frozen=True)
class Regexp:
    """A pattern that was read: `text` is one that Java, RE2 and Rust read alike."""

    text: str
    first: str  # the same for Java, to find the first match: what is repeated first is not tried from its middle
    groups: int
    always: frozenset[int]  # the groups that every match has
    shortest: int  # characters of the shortest match


@lru_cache(PATTERNS_KEPT)
def regexp(pattern: str) -> Regexp:
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(f"the pattern has {len(pattern)} characters, at most {LONGEST_PATTERN} are allowed")
    reader = _Reader(pattern)
    whole = _Group(reader.choices())
    if not reader.at_end:
        raise BadPattern("a ) closes nothing", "write [)] for the character")
    if reader.places > MOST_PLACES or whole.ways > MOST_WAYS:
        raise BadPattern("the pattern has too many repetitions or alternatives")
    found = whole.before(_Tail(_Set(), 0, True))
    anchored = all(choice and choice[0] == _Edge(r"\A") for choice in whole.choices)
    if found.degree + (not anchored) > STEEPEST:
        hint = "what follows * or + has to begin with a character that they do not repeat, as in [^/]*/"
        raise BadPattern("the pattern may take too long: what it repeats can end at too many places", hint)
    run = _leading(whole)
    first = whole.text if run is None else f"(?<!{run.set.text}){whole.text}"
    return Regexp(whole.text, first, reader.groups, frozenset(whole.always()), whole.shortest)


def _leading(part: _Part) -> _Char | None:
    """The repetition that a pattern begins with. A match from its middle is one from its beginning, too."""
    if isinstance(part, _Group):
        only = part.choices[0] if len(part.choices) == 1 and not part.optional else ()
        return _leading(only[0]) if only else None
    return part if isinstance(part, _Char) and part.most is None and part.least < 2 else None


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self.groups = 0
        self.places = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._pattern)

    def choices(self) -> tuple[tuple[_Part, ...], ...]:
        found: list[list[_Part]] = [[]]
        while not self.at_end and not self._sees(")"):
            if self._takes("|"):
                found.append([])
            else:
                found[-1].append(self._part())
        return tuple(map(tuple, found))

    def _sees(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _takes(self, text: str) -> bool:
        if not self._sees(text):
            return False
        self._at += len(text)
        return True

    def _next(self) -> str:
        if self.at_end:
            raise BadPattern("the pattern ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _part(self) -> _Part:
        if self._takes("("):
            return self._group()
        if self._takes("^") or self._takes(r"\A"):
            return self._edge(r"\A")
        if self._takes("$") or self._takes(r"\z"):
            return self._edge(r"\z")
        return self._repeated(self._set())

    def _edge(self, text: str) -> _Edge:
        if any(map(self._sees, "*+?{")):
            raise BadPattern("^ and $ cannot be repeated")
        return _Edge(text)

    def _group(self) -> _Group:
        number = 0
        if self._sees("?") and not self._takes("?:"):
            hint = "flags, names of groups, and conditions on what stands in front or behind are missing"
            raise BadPattern("(? is supported as (?: alone", hint)
        if self._pattern[self._at - 1] == "(":
            self.groups += 1
            number = self.groups
        choices = self.choices()
        if not self._takes(")"):
            raise BadPattern("a ( is not closed", "write [(] for the character")
        optional = self._takes("?")
        if any(map(self._sees, "*+?{")):
            raise BadPattern("a group is repeated", _REPEATED_GROUP)
        return _Group(choices, number, optional)

    def _set(self) -> _Set:
        character = self._next()
        if character in "*+?{":
            raise BadPattern(f"{character} has nothing to repeat", f"write [{character}] for the character")
        if character == "[":
            return self._class()
        if character == ".":
            return _Set(ASCII - {"\n"}, None)
        return self._escaped() if character == "\\" else _one(character)

    def _escaped(self) -> _Set:
        character = self._next()
        if character in _CONTROLS:
            return _one(_CONTROLS[character])
        if character.lower() in _CLASSES:
            named = _CLASSES[character.lower()]
            return _Set(named) if character.islower() else _Set(ASCII - named, None)
        if character in _ESCAPES or not character.isascii() or character.isalnum():
            hint = _ESCAPES.get(character, "systems read it differently, or not at all")
            raise BadPattern(f"\\{character} is not supported", hint)
        return _one(character)

    def _class(self) -> _Set:
        negated = self._takes("^")
        found: frozenset[str] = frozenset()
        if self._sees("]"):
            raise BadPattern("systems read a class that begins with ] differently", "write \\] for the character")
        while not self._takes("]"):
            found |= self._range()
        return _Set(ASCII - found, None) if negated else _Set(found)

    def _range(self) -> frozenset[str]:
        low = self._member()
        if not self._sees("-") or self._sees("-]"):
            return low
        self._takes("-")
        high = self._member()
        if len(low) > 1 or len(high) > 1 or max(low) > max(high):
            raise BadPattern("a range in a class goes from one character to a later one", "write \\- for the character")
        return frozenset(map(chr, range(ord(max(low)), ord(max(high)) + 1)))

    def _member(self) -> frozenset[str]:
        if self._sees("[") or self._sees("&&") or self._sees("~~") or self._sees("--"):
            raise BadPattern("systems read [, &&, -- and ~~ differently in a class", "write \\[, \\&, \\- or \\~")
        character = self._next()
        found = self._escaped() if character == "\\" else _one(character)
        if found.others != frozenset():
            hint = "others stand by themselves, or among alternatives: (?:é|[a-z])"
            raise BadPattern("a class has characters of ASCII alone", hint)
        return found.ascii

    def _repeated(self, one: _Set) -> _Char:
        least, most = self._count()
        if any(map(self._sees, "*+?{")):
            hint = "they would take time without bound, or systems do not have them"
            raise BadPattern("*?, *+ and the like are not supported", hint)
        self.places += 1 if most is None else most
        return _Char(one, least, most)

    def _count(self) -> tuple[int, int | None]:
        if self._takes("*"):
            return 0, None
        if self._takes("+"):
            return 1, None
        if self._takes("?"):
            return 0, 1
        if not self._takes("{"):
            return 1, 1
        numbers, closed, _ = self._pattern[self._at :].partition("}")
        low, comma, high = numbers.partition(",")
        self._at += len(numbers) + 1
        known = closed and all(n.isascii() and n.isdigit() and len(n) < 4 for n in (low, high or "1"))
        least, most = (int(low), int(high) if high else None if comma else int(low)) if known else (0, 0)
        if not known or most == 0 or max(least, most or least) > MOST_REPEATED or (most or least) < least:
            raise BadPattern(f"{{ is followed by a number, or two, from 0 to {MOST_REPEATED} and by }}", "write [{]")
        return least, most


def _one(character: str) -> _Set:
    return _Set(frozenset({character})) if character.isascii() else _Set(frozenset(), frozenset({character}))
