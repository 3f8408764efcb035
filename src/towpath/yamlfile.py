"""YAML as a user expects it: keys are texts, dates are texts, and no key may come twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from towpath.errors import JobError, Problem, ProblemsError

_TEXT = "tag:yaml.org,2002:str"
_DATE = "tag:yaml.org,2002:timestamp"
_MERGE = "tag:yaml.org,2002:merge"

_Loader = type[yaml.SafeLoader] | type[yaml.CSafeLoader]


Lines = dict[str, int]  # by the dotted path of a value


def read(path: Path, title: str) -> Any:
    """What the file says. Raises JobError under `title` if it cannot be read, is no YAML, or repeats a key."""
    return _read(path, title, yaml.SafeLoader, JobError)[0]


def read_with_lines(path: Path, title: str, error: type[ProblemsError]) -> tuple[Any, Lines]:
    """Like `read` for files of many thousand lines, with the line of every value."""
    value, root = _read(path, title, yaml.CSafeLoader, error)
    return value, dict(_lines(root, "")) if root else {}


def _read(path: Path, title: str, kind: _Loader, failure: type[ProblemsError]) -> tuple[Any, yaml.Node | None]:
    try:
        loader = kind(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        repeated = list(_plain(node, "", set())) if node else []
        if repeated:
            raise failure(title, repeated)
        return (loader.construct_document(node) if node else None), node
    except OSError as error:
        raise failure(title, [Problem("", f"cannot be read: {error.strerror}", "check the path")]) from error
    except UnicodeDecodeError as error:
        raise failure(title, [Problem("", f"is not UTF-8 text: {error.reason}", "save it as UTF-8")]) from error
    except yaml.MarkedYAMLError as error:
        raise failure(title, [_syntax_problem(error)]) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a value such as !!int x
        raise failure(title, [Problem("", f"is not valid YAML: {error}")]) from error


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


def _syntax_problem(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    said = ", ".join(part for part in (error.context, error.problem) if part)
    return Problem(where, f"is not valid YAML: {said}", "check indentation, colons, quotes and brackets there")


def _plain(node: yaml.Node, where: str, seen: set[int]) -> Iterator[Problem]:
    """Make texts of keys (`on` and `2024` are names here) and dates, and yield the keys that come twice."""
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if node.tag == _DATE:
        node.tag = _TEXT
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _plain(item, where, seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            yield Problem(where or f"line {line}", f"expected a text as a key in line {line}", "quote keys with { or [")
            continue
        if key.tag != _MERGE:
            key.tag = _TEXT
        place = f"{where}.{key.value}" if where else key.value
        if key.value in lines:
            message = f"comes twice, in lines {lines[key.value]} and {line}"
            yield Problem(place, message, "remove or rename one of them")
        lines.setdefault(key.value, line)
        yield from _plain(value, place, seen)
