"""The rules of windows: which input needs one, and what it means there."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from towpath.lang.dialect import Windowed
from towpath.lang.query import SESSION, Input, Window, duration, window
from towpath.lang.scope import ScopedInput
from towpath.lang.underline import Problems

# What a SELECT does; empty when a mistake hides it.
AGGREGATE, FIRST_ROWS, PLAIN = "an aggregate", "first rows (top-N)", "a row for each tuple"
_NEED = {
    AGGREGATE: ("an aggregate needs a window", "one result per"),
    FIRST_ROWS: ("first rows (top-N) need a window", "the first rows of each"),
}

_WINDOWS_THERE_ARE = "a session is one of the tuples of one input"
_EXAMPLE = "[RANGE 10 SECONDS]"
_UNBOUNDED = (
    "joins over all time, which keep every tuple for ever, are missing; "
    f"{{}} {_EXAMPLE} meets only tuples up to 10 seconds after its own"
)


def read_windows(sources: list[ScopedInput], kind: str, problems: Problems) -> tuple[tuple[Input, ...], Window | None]:
    """The streams with their join windows, and the window of an aggregate or of the first rows."""
    if len(sources) == 1:
        if sources[0].is_session and (kind == FIRST_ROWS or len(sources[0].inputs) > 1):
            what = "first rows (top-N) of sessions" if kind == FIRST_ROWS else "sessions over a join"
            problems.add(sources[0].node, f"{what} are not supported", f"they are missing; {_WINDOWS_THERE_ARE}")
        return sources[0].inputs, _single(sources[0], kind, problems)
    for source in sources:
        if source.is_session:
            problems.add(source.node, "sessions of a join are not supported", f"they are missing; {_WINDOWS_THERE_ARE}")
    joined = tuple(replace(i, range_us=s.range_us) for s in sources for i in s.inputs)
    for source in sources:
        if source.range_us is None and isinstance(source.node, exp.Table | exp.Subquery):
            message = f"in a join every input needs a window, {source.alias or 'a derived table'} has none"
            problems.add(source.node, message, _UNBOUNDED.format(_shown(source, problems)))
    if kind in _NEED:
        return joined, _over_join(sources, kind, problems)
    for source in sources:
        if source.slide_us and kind == PLAIN:
            problems.add(source.node, "SLIDE belongs to an aggregate, a join has none", f"write {_range_of(source)}")
    return joined, None


def _single(source: ScopedInput, kind: str, problems: Problems) -> Window | None:
    if kind in _NEED and source.range_us is None and not isinstance(source.node, Windowed):  # else it was refused
        windowed = f"{_shown(source, problems)} {_EXAMPLE}"
        message, gives = _NEED[kind]
        hint = f"updating results over all time are missing; {windowed} gives {gives} 10 seconds"
        problems.add(source.node, message, hint)
    if kind == PLAIN and source.range_us is not None:
        message = "a window does nothing here: nothing is joined or aggregated"
        problems.add(source.node, message, "leave it out, or add an aggregate such as count(*)")
    slide_us = SESSION if source.is_session else source.slide_us or source.range_us
    return Window(source.range_us, slide_us or SESSION) if source.range_us else None


def _over_join(sources: list[ScopedInput], kind: str, problems: Problems) -> Window | None:
    windowed = [s for s in sources if s.range_us]
    if not windowed:
        return None
    first = windowed[0]
    slides = [s for s in windowed if s.slide_us]
    for other in windowed:
        if other.range_us != first.range_us:
            message = (
                f"{kind} over a join {'needs' if kind == AGGREGATE else 'need'} the same RANGE on every input: "
                f"{first.alias} has {duration(first.range_us or 0)}, {other.alias} has {duration(other.range_us or 0)}"
            )
            hint = "to have other windows in the join, put it into a derived table: "
            problems.add(other.node, message, hint + "FROM (SELECT ... FROM a [RANGE 5 SECONDS], ...) [RANGE 1 MINUTE]")
    for other in slides:
        if other.slide_us != slides[0].slide_us:
            message = f"{slides[0].alias} and {other.alias} have different SLIDEs"
            problems.add(other.node, message, "give all inputs the same SLIDE, or only one of them")
    slide_us = slides[0].slide_us if slides else first.range_us
    return Window(first.range_us or 0, slide_us or 0)


def _range_of(source: ScopedInput) -> str:
    return window(source.range_us or 0, None)


def _shown(source: ScopedInput, problems: Problems) -> str:
    return "(SELECT ...)" if isinstance(source.node, exp.Subquery) else problems.text(source.node)
