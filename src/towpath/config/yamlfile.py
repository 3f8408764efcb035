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

_Loader = type[yaml.SafeLoader] | type[yaml.CSafeLoader]


Lines = dict[str, int]  # by the dotted path of a value


def read(path: Path, title: str) -> tuple[Any, list[Mistake]]:
    """What the file says, and the keys that come twice, of which the last is taken: the rest can be checked, too.

    Raises JobError under `title` if the file cannot be read or is no YAML.
    """
    value, _, repeated = _read(path, title, yaml.SafeLoader, JobError)
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
        loader = kind(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        strange: list[Mistake] = []
        repeated = list(_plain(node, "", set(), strange)) if node else []
        if strange:
            raise failure(title, [*repeated, *strange])
        return (loader.construct_document(node) if node else None), node, repeated
    except OSError as error:
        raise failure(title, [Mistake("", f"cannot be read: {error.strerror}", "check the path")]) from error
    except UnicodeDecodeError as error:
        raise failure(title, [Mistake("", f"is not UTF-8 text: {error.reason}", "save it as UTF-8")]) from error
    except yaml.MarkedYAMLError as error:
        raise failure(title, [_syntax_problem(error)]) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a value such as !!int x
        raise failure(title, [Mistake("", f"is not valid YAML: {error}")]) from error


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
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    said = ", ".join(part for part in (error.context, error.problem) if part)
    return Mistake(where, f"is not valid YAML: {said}", "check indentation, colons, quotes and brackets there")


def _plain(node: yaml.Node, where: str, seen: set[int], strange: list[Mistake]) -> Iterator[Mistake]:
    """Make texts of keys (`on` and `2024` are names here) and dates, and yield the keys that come twice.

    Keys that are no texts are `strange`: nothing can be made of a file with those.
    """
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if node.tag == _DATE:
        node.tag = _TEXT
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _plain(item, where, seen, strange)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
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
