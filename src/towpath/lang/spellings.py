"""SELECTs as other dialects spell them, rewritten in place: windows behind the inputs of FROM, as towpath has them.

What is rewritten has the same answer. Everything else is refused with the name of what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from towpath.lang.dialect import Windowed
from towpath.lang.durations import NoDuration, duration_us
from towpath.lang.event_times import EventTimes
from towpath.lang.fields import is_one_of
from towpath.lang.functions import AGGREGATES
from towpath.lang.ranked_tables import by_window, rankings, take_first
from towpath.lang.scope import sources_of
from towpath.lang.table_windows import MISSING, TableWindow
from towpath.lang.time_bounds import bound_joins
from towpath.lang.underline import Problems, mark, span
from towpath.lang.window_joins import join_windows
from towpath.schema import Catalog

_UPDATES = "results over all time, which change with every tuple, are missing: "
_OF_A_ROW = "the window of a single tuple is missing: add an aggregate and GROUP BY window_start, window_end"
_NUMBERS = "it counts milliseconds in ksqlDB; window_start and window_end are timestamps"
_STRUCT = "columns with parts are missing: name window.start and window.end"
_SLIDE_FIRST = ("time", "slide", "size")
_SESSIONS = ("session", "session_window")
_CALLS = {
    **{"tumble": ("time", "size"), "hop": _SLIDE_FIRST, "window": ("time", "size", "slide")},
    **dict.fromkeys(_SESSIONS, ("time", "gap")),
}
_BOUNDS = {
    **{
        f"{kind}_{bound}": (kind, f"window_{bound}")
        for kind in ("tumble", "hop", "session")
        for bound in ("start", "end")
    },
    **{f"{kind}_rowtime": (kind, "window_time") for kind in ("tumble", "hop", "session")},
}
_END_IS_IN = "windows that hold their end and not their beginning are missing"
_NO_CALLS = {
    **{name.lower(): hint for name, hint in MISSING.items()},
    **dict.fromkeys(("tumblingwindow", "hoppingwindow", "slidingwindow", "sessionwindow"), _END_IS_IN),
    **dict.fromkeys(
        ("tumble_proctime", "hop_proctime", "session_proctime"), "windows by the time of the machine are missing"
    ),
}


@dataclass(frozen=True)
class _Called:
    """A window function in GROUP BY."""

    kind: str
    size_us: int
    slide_us: int | None


def rewrite(tree: exp.Expr, catalog: Catalog, problems: Problems) -> bool:
    """Whether there was anything of another dialect."""
    times = EventTimes(catalog)
    selects = list(tree.find_all(exp.Select))
    rewritten = [_Rewriter(select, times, problems).rewrite() for select in reversed(selects)]  # inner ones first
    return any(rewritten) | any([take_first(select) for select in reversed(selects)])


class _Rewriter:
    def __init__(self, select: exp.Select, times: EventTimes, problems: Problems) -> None:
        self._select = select
        self._times = times
        self._problems = problems

    def rewrite(self) -> bool:
        sources = sources_of(self._select)
        windows = [source for source in sources if isinstance(source, TableWindow)]
        calls = list(self._calls())
        if windows:
            self._table_windows(sources, windows)
        elif calls:
            self._group_windows(sources, calls)
        else:
            return len(sources) > 1 and bound_joins(self._select, sources, self._times, self._problems)
        return True

    # Windows in FROM

    def _table_windows(self, sources: list[exp.Expr], windows: list[TableWindow]) -> None:
        for node in self._calls():
            self._problems.add(node, f"{node.name} is not supported here", "the input in FROM has a window already")
        for window in windows:
            self._check_time(window, window.args.get("time"))
        functions = [window for window in windows if window.args.get("function")]
        if functions:
            aliases = {w.this.alias_or_name.lower() for w in functions}
            if len(sources) > 1 and not join_windows(self._select, sources, self._times, self._problems):
                return
            used = self._window_columns(aliases)
            if not self._check_grouped(functions[0], used, joined=len(sources) > 1):
                windows[0].replace(windows[0].this.copy())
                return
        else:
            self._refuse_numbers()
        for window in windows:
            if window.args.get("session") and not self._check_partition(window):
                return
            lengths = window.args["range_us"], window.args.get("slide_us")
            window.replace(_windowed(window.this, window, *lengths, session=bool(window.args.get("session"))))

    def _check_partition(self, window: TableWindow) -> bool:
        """A session is of what GROUP BY has beside the window; that PARTITION BY says another thing is refused."""
        if not window.args.get("function"):
            return True
        wanted = {key.name.lower() for key in window.args.get("partition") or []}
        keys = [key for key in _group(self._select) if not _is_window(key)]
        named = {key.name.lower() for key in keys if isinstance(key, exp.Column)}
        if wanted == named and len(named) == len(keys):
            return True
        hint = "sessions of other keys than those of GROUP BY are missing"
        self._problems.add(window, "PARTITION BY of SESSION and GROUP BY have different keys", hint)
        return False

    def _window_columns(self, aliases: set[str]) -> bool:
        used = any(item.is_star for item in self._select.expressions)
        for column in list(self._columns()):
            mine = not column.table or column.table.lower() in aliases
            if mine and column.name.lower() in ("window_start", "window_end", "window_time"):
                self._put(column, _bound(column.name.lower()), column.name)
                used = True
        return used

    def _check_grouped(self, window: TableWindow, used: bool, joined: bool) -> bool:
        """Whether the window counts: it does not for single tuples that say nothing of it."""
        ranked = list(rankings(self._select))
        if ranked and not joined:
            self._check_ranked(ranked)
            return True
        if self._grouped_by_window():
            return True
        tumbling = not window.args.get("slide_us")
        if tumbling and not used and not self._aggregates():
            return joined
        name = window.args["function"]
        if self._aggregates():
            hint = _UPDATES + "GROUP BY window_start, window_end gives a result for each window"
            self._problems.add(window, f"{name} without its window in GROUP BY is not supported", hint)
        elif joined:
            hint = "the windows of a join as columns are missing; without them the join gives the same pairs"
            self._problems.add(window, f"the window of joined {name}s cannot be put out", hint)
        else:
            self._problems.add(window, f"{name} without an aggregate is not supported", _OF_A_ROW)
        return True

    def _check_ranked(self, ranked: list[exp.Window]) -> None:
        for ranking in ranked:
            if not by_window(ranking):
                hint = _UPDATES + "PARTITION BY window_start, window_end has the first rows of each window"
                self._problems.add(ranking, "a ranking of the rows of all windows is not supported", hint)
        items = self._select.expressions
        if any(isinstance(item, exp.Star) for item in items) and not self._aggregates():
            bounds = [_named(_bound(name), name) for name in ("window_start", "window_end", "window_time")]
            found = [[item, *bounds] if isinstance(item, exp.Star) else [item] for item in items]
            self._select.set("expressions", [item for some in found for item in some])

    def _grouped_by_window(self) -> bool:
        items = self._select.expressions
        named = {item.alias.lower() for item in items if isinstance(item, exp.Alias) and _is_window(item.this)}
        for key in _group(self._select):
            if isinstance(key, exp.Literal) and not key.is_string and 0 < int(key.this) <= len(items):
                key = items[int(key.this) - 1].unalias()
            if _is_window(key) or (isinstance(key, exp.Column) and not key.table and key.name.lower() in named):
                return True
        return False

    def _aggregates(self) -> bool:
        names = (node.name.lower() for node in own_nodes(self._select) if isinstance(node, exp.Anonymous))
        return bool(_group(self._select)) or any(name in AGGREGATES for name in names)

    def _refuse_numbers(self) -> None:
        for column in self._columns():
            if column.name.lower() in ("windowstart", "windowend"):
                self._problems.add(column, f"{column.name} is not supported", _NUMBERS)

    # Windows in GROUP BY

    def _calls(self) -> Iterator[exp.Anonymous]:
        for node in own_nodes(self._select):
            if isinstance(node, exp.Anonymous) and node.name.lower() in {*_CALLS, *_BOUNDS, *_NO_CALLS}:
                yield node

    def _group_windows(self, sources: list[exp.Expr], calls: list[exp.Anonymous]) -> None:
        problems = self._problems
        for call in calls:
            if call.name.lower() in _NO_CALLS:
                problems.add(call, f"{call.name} is not supported", _NO_CALLS[call.name.lower()])
        keys = [key for key in _group(self._select) if isinstance(key, exp.Anonymous) and key.name.lower() in _CALLS]
        if len(problems) or not sources:  # that a FROM is missing is said where inputs are read
            return
        if not keys:
            hint = _UPDATES + "a window function stands in GROUP BY, or in FROM"
            problems.add(calls[0], f"{calls[0].name} is not supported here", hint)
            return
        if len(sources) > 1:
            hint = (
                "windows by the time of one input of a join are missing; a join's results have the time of the latest"
            )
            problems.add(keys[0], f"{keys[0].name} over a join is not supported", hint)
            return
        if isinstance(sources[0], Windowed):
            problems.add(keys[0], "the input in FROM has a window already", "leave one of them out")
            return
        first = self._called(keys[0], sources[0])
        for call in calls:
            self._replace_call(call, first, sources[0])
        if len(problems) or first is None:
            return
        for column in list(self._columns()):
            if column.table.lower() in ("window", "session_window") and column.name.lower() in ("start", "end"):
                self._put(column, _bound(f"window_{column.name.lower()}"), column.name)
            elif column.name.lower() in ("window", "session_window") and not column.table:
                problems.add(column, f"{column.name} is not a column", _STRUCT)
        session = first.kind in _SESSIONS
        sources[0].replace(_windowed(sources[0], keys[0], first.size_us, first.slide_us, session=session))

    def _called(self, call: exp.Anonymous, source: exp.Expr, kind: str = "") -> _Called | None:
        """The window that a call names; notes what is wrong with it."""
        kind = kind or call.name.lower()
        arguments = list(call.expressions)
        if arguments and isinstance(arguments[0], exp.Interval):  # Arroyo knows the time column
            arguments.insert(0, None)
        names = _CALLS[kind]
        if not len(names) - (kind == "window") <= len(arguments) <= len(names):
            hint = "windows that begin at an offset are missing" if len(arguments) > len(names) else ""
            self._problems.add(call, f"{call.name} takes {', '.join(names)}", hint)
            return None
        given = dict(zip(names, arguments, strict=False))
        self._check_time(source, given.pop("time"))
        lengths = {name: self._length(node) for name, node in given.items() if node}
        if None in lengths.values():
            return None
        return _Called(kind, lengths["gap" if kind in _SESSIONS else "size"] or 0, lengths.get("slide"))

    def _length(self, node: exp.Expr) -> int | None:
        try:
            return duration_us(node)
        except NoDuration as error:
            self._problems.add(node, str(error))
            return None

    def _replace_call(self, call: exp.Anonymous, first: _Called | None, source: exp.Expr) -> None:
        name = call.name.lower()
        kind, bound = _BOUNDS.get(name, (name, ""))
        other = self._called(call, source, kind)
        if first is None or other is None:
            return
        if other != first:
            self._problems.add(call, f"{call.name} names another window than GROUP BY", "one SELECT has one window")
        elif bound:
            self._put(call, _bound(bound), bound)
        elif isinstance(call.parent, exp.Dot) and call.parent.name.lower() in ("start", "end"):  # window(...).start
            self._put(call.parent, _bound(f"window_{call.parent.name.lower()}"), call.parent.name)
        elif isinstance(call.parent, exp.Group):
            self._put(call, _bound("window_start"), "")
        else:
            hint = _STRUCT if kind in ("window", "session_window") else "a window has TUMBLE_START and TUMBLE_END"
            self._problems.add(call, f"{call.name} is not supported here", hint)

    # Both

    def _check_time(self, source: exp.Expr, column: exp.Expr | None) -> None:
        known = self._times.of(source)
        what = source.this if isinstance(source, TableWindow) else source
        if column is None or known is None:
            return
        if isinstance(column, exp.Column) and is_one_of(column, known, {what.alias_or_name.lower(), what.name.lower()}):
            return
        hint = f"windows by another column than the event time are missing; it is {', '.join(sorted(known)) or 'none'}"
        text = self._problems.text(column)
        self._problems.add(column, f"{text} is not the event time of {what.alias_or_name or 'the derived table'}", hint)

    def _columns(self) -> Iterator[exp.Column]:
        return (node for node in own_nodes(self._select) if isinstance(node, exp.Column))

    def _put(self, old: exp.Expr, new: exp.Expr, name: str) -> None:
        """An output column keeps its name."""
        place = span(old)
        for node in new.walk():
            mark(node, place or (0, 1))
        if name and old.parent is self._select and name.lower() != new.name.lower():
            new = exp.Alias(this=new, alias=exp.to_identifier(name))
            mark(new, place or (0, 1))
        old.replace(new)


def own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a SELECT without those of the SELECTs in it."""
    clauses = [select.args.get(name) for name in ("where", "group", "having", "qualify", "order")]
    conditions = [join.args.get("on") for join in select.args.get("joins") or []]
    for root in [*select.expressions, *clauses, *conditions]:
        if root is not None:
            yield from list(root.walk(prune=lambda node: isinstance(node, exp.Query)))


def _group(select: exp.Select) -> list[exp.Expr]:
    group = select.args.get("group")
    return list(group.expressions) if group else []


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name.lower() in ("window_start", "window_end")


def _bound(name: str) -> exp.Expr:
    if name != "window_time":
        return exp.column(name)
    millisecond = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("MILLISECOND"))
    return exp.Sub(this=exp.column("window_end"), expression=millisecond)


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=value, alias=exp.to_identifier(name)) if value.alias_or_name != name else value


def _windowed(source: exp.Expr, at: exp.Expr, range_us: int, slide_us: int | None, *, session: bool) -> Windowed:
    windowed = Windowed(this=source.copy(), range_us=range_us, slide_us=slide_us, session=session)
    place = span(source) or span(at) or (0, 1)
    mark(windowed, place)
    windowed.meta["range_us"] = windowed.meta["slide_us"] = span(at) or place
    return windowed
