"""YAML as a user expects it: keys are texts, dates are texts, and no key may come twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from towpath.errors import JobError, Mistake, ProblemsError

_TEXT = "tag:yaml.org,2002:str"
_DATE = "tag:yaml.org,2002:timestamp"
_MERGE = "tag:yaml.org,2002:merge"

_INT = "tag:yaml.org,2002:int"

# What people write is far below. Beyond it a short text can stand for anything, and whatever walks over it recurses.
DEEPEST = 100  # lists and keys within each other
MOST_REPEATED = 100_000  # values that aliases stand for
LONGEST_NUMBER = 40  # digits of an integer
MOST_BYTES = 4_000_000  # of a job file: some 20,000 queries. Python's reader of YAML takes a second for 100,000
MOST_BYTES_WITH_LINES = 64_000_000


_OPENED = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSED = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


class _Bounded(Exception):
    """A text that may be YAML, and stands for more than anybody writes."""

    def __init__(self, message: str, hint: str, mark: yaml.Mark | None = None) -> None:
        super().__init__(message)
        self.mistake = Mistake(_place(mark), message, hint)


class _PlainLoader(yaml.SafeLoader):
    """Notices that a file is nested too deeply before it is, for it is read by recursion."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > DEEPEST and self.check_event(*_OPENED):
            raise _too_deep(self.peek_event().start_mark)
        found: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return found


_Loader = type[_PlainLoader] | type[yaml.CSafeLoader]


Lines = dict[str, int]  # by the dotted path of a value


def read(path: Path, title: str) -> tuple[Any, list[Mistake]]:
    """What the file says, and the keys that come twice, of which the last is taken: the rest can be checked, too.

    Raises JobError under `title` if the file cannot be read or is no YAML.
    """
    value, _, repeated = _read(path, title, _PlainLoader, JobError)
    return value, repeated


def read_with_lines(path: Path, title: str, error: type[ProblemsError]) -> tuple[Any, Lines]:
    """Like `read` for files of many thousand lines, with the line of every value."""
    value, root, repeated = _read(path, title, yaml.CSafeLoader, error)
    if repeated:
        raise error(title, repeated)
    return value, dict(_lines(root, "")) if root else {}


def _read(
    path: Path, title: str, kind: _Loader, failure: type[ProblemsError]
) -> tuple[Any, yaml.Node | None, list[Mistake]]:
    try:
        text = _text(path, MOST_BYTES if kind is _PlainLoader else MOST_BYTES_WITH_LINES)
        if kind is yaml.CSafeLoader:
            _refuse_deep(text)
        loader = kind(text)
        node = loader.get_single_node()
        if node:
            _refuse_bomb(node)
        strange: list[Mistake] = []
        repeated = list(_plain(node, "", set(), strange)) if node else []
        if strange:
            raise failure(title, [*repeated, *strange])
        return (loader.construct_document(node) if node else None), node, repeated
    except OSError as error:
        raise failure(title, [Mistake("", f"cannot be read: {error.strerror}", "check the path")]) from error
    except UnicodeDecodeError as error:
        raise failure(title, [Mistake("", f"is not UTF-8 text: {error.reason}", "save it as UTF-8")]) from error
    except _Bounded as error:
        raise failure(title, [error.mistake]) from None
    except yaml.MarkedYAMLError as error:
        raise failure(title, [_syntax_problem(error)]) from error
    except (yaml.YAMLError, ValueError, KeyError) as error:  # a value such as !!int x, or !!bool x
        raise failure(title, [Mistake("", f"is not valid YAML: {error}")]) from error


def _text(path: Path, most: int) -> str:
    """Of what it is now: a file may grow, or be none."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        hint = (
            "queries may be files of their own: queries_folder" if most == MOST_BYTES else "Parquet holds large tables"
        )
        raise _Bounded(f"has more than {most:,} bytes", hint)
    return data.decode("utf-8")


def _refuse_deep(text: str) -> None:
    """C's loader recurses without looking; its parser does not."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, _OPENED) - isinstance(event, _CLOSED)
        if depth > DEEPEST:
            raise _too_deep(event.start_mark)


def _too_deep(mark: yaml.Mark) -> _Bounded:
    return _Bounded(f"is nested more than {DEEPEST} levels deep", "close brackets, and take lists out of lists", mark)


def _refuse_bomb(root: yaml.Node) -> None:
    """Aliases that stand for themselves, or together for very much."""
    sizes: dict[int, int] = {}
    within: set[int] = set()

    def size(node: yaml.Node) -> int:
        if id(node) in within:
            raise _Bounded("has an alias for this in it", "write out what it stands for", node.start_mark)
        if id(node) not in sizes:
            within.add(id(node))
            children = node.value if isinstance(node, yaml.SequenceNode) else ()
            if isinstance(node, yaml.MappingNode):
                children = [part for pair in node.value for part in pair]
            sizes[id(node)] = 1 + sum(map(size, children))
            within.remove(id(node))
        return sizes[id(node)]

    if size(root) - len(sizes) > MOST_REPEATED:
        message = f"has aliases that stand for more than {MOST_REPEATED:,} values"
        raise _Bounded(message, "write out what is needed", root.start_mark)


def _lines(node: yaml.Node, where: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        parts = [(key.value, key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        parts = [(str(n), item, item) for n, item in enumerate(node.value)]
    else:
        return
    for name, begin, value in parts:
        place = f"{where}.{name}" if where else name
        yield place, begin.start_mark.line + 1
        yield from _lines(value, place)


def _syntax_problem(error: yaml.MarkedYAMLError) -> Mistake:
    said = ", ".join(part for part in (error.context, error.problem) if part)
    where = _place(error.problem_mark or error.context_mark)
    return Mistake(where, f"is not valid YAML: {said}", "check indentation, colons, quotes and brackets there")


def _place(mark: yaml.Mark | None) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _joined(node: yaml.MappingNode, where: str) -> Iterator[Mistake]:
    """Puts texts together again that a comma has cut: `{sql: SELECT a, b FROM s}` has the keys `sql` and `b FROM s`."""
    kept: list[tuple[yaml.Node, yaml.Node]] = []
    cut: set[int] = set()
    for key, value in node.value:
        # A key without a colon, and so without a value.
        alone = isinstance(value, yaml.ScalarNode) and value.start_mark.index == key.end_mark.index
        before = kept[-1][1] if kept else None
        if alone and isinstance(key, yaml.ScalarNode) and isinstance(before, yaml.ScalarNode) and not before.style:
            before.value, before.tag = f"{before.value}, {key.value}", _TEXT
            cut.add(len(kept) - 1)
        else:
            kept.append((key, value))
    for number in sorted(cut):
        key, value = kept[number]
        place = f"{where}.{key.value}" if where else key.value
        message = f"a comma within {{ }} ends a value, in line {value.start_mark.line + 1}"
        yield Mistake(place, message, f'put it in quotes: {key.value}: "{value.value}"')
    node.value = kept


def _plain(node: yaml.Node, where: str, seen: set[int], strange: list[Mistake]) -> Iterator[Mistake]:
    """Make texts of keys (`on` and `2024` are names here) and dates, and yield the keys that come twice.

    Keys that are no texts are `strange`, and numbers that no computer counts with: nothing can be made of a file with
    those.
    """
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if node.tag == _DATE:
        node.tag = _TEXT
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _plain(item, where, seen, strange)
    if node.tag == _INT and len(node.value) > LONGEST_NUMBER:
        expected = f"expected a number of at most {LONGEST_NUMBER} digits"
        line = node.start_mark.line + 1
        strange.append(Mistake(where or f"line {line}", f"{expected}, got one of {len(node.value)} in line {line}"))
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    if node.flow_style:
        yield from _joined(node, where)
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            message = f"expected a text as a key in line {line}"
            strange.append(Mistake(where or f"line {line}", message, "quote keys with { or ["))
            continue
        if key.tag != _MERGE:
            key.tag = _TEXT
        place = f"{where}.{key.value}" if where else key.value
        if key.value in lines:
            message = f"comes twice, in lines {lines[key.value]} and {line}"
            yield Mistake(place, message, "remove or rename one of them")
        lines.setdefault(key.value, line)
        yield from _plain(value, place, seen, strange)
