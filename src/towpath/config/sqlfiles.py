"""A folder with files of SQL: each is a query named like the file without `.sql`.

A folder is anybody's to write into, so whatever lies there is reported in words; nothing of it is raised.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from towpath.config.settings import shown
from towpath.errors import Mistake

SUFFIX = ".sql"
MOST_BYTES = 1 << 20  # more than any query that can be planned
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")  # of queries and nodes; no leading dot or dash: .., -rf
NAME_HINT = "use at most 200 letters, digits, _, - and ., beginning with a letter, a digit or _"

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}

Stamp = tuple[int, ...]  # another one whenever a file was written, replaced, or its permissions were changed


@dataclass(frozen=True)
class SqlFile:
    """What a file holds: SQL, or the problem with it; neither if it has vanished meanwhile."""

    name: str  # of the query
    sql: str | None = None
    problem: Mistake | None = None
    empty: bool = False


def look(folder: Path) -> dict[str, Stamp]:
    """The files by their names. Raises OSError if the folder cannot be looked into."""
    found: dict[str, Stamp] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and entry.name.endswith(SUFFIX):  # editors keep their own files beside
                try:
                    found[entry.name] = _stamp(entry)
                except FileNotFoundError:
                    continue  # deleted a moment ago
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class Contents:
    """All files of a folder."""

    queries: dict[str, str] = field(default_factory=dict)  # name -> SQL
    problems: tuple[Mistake, ...] = ()  # with those that hold none
    names: frozenset[str] = frozenset()  # of the queries that they hold or should hold
    stamps: dict[str, Stamp] = field(default_factory=dict)  # by file
    taken: Set[str] = frozenset()  # names of queries that are defined elsewhere


def usable(folder: Path, taken: Set[str]) -> Contents:
    """The queries of a folder; `taken` are the names of those that are defined elsewhere."""
    try:
        files = look(folder)
    except OSError as error:
        return Contents(problems=(unreachable(folder, error),), taken=taken)
    found = [read(folder, file, taken) for file in files]
    sqls = {file.name: file.sql for file in found if file.sql is not None}
    problems = tuple(file.problem for file in found if file.problem is not None)
    names = frozenset(file.name for file in found if file.name not in taken)
    return Contents(sqls, problems, names, files, taken)


def unreachable(folder: Path, error: OSError) -> Mistake:
    message = f"{folder} cannot be looked into: {error.strerror}"
    return Mistake("queries_folder", message, "its queries go on as they are until it is there again")


def read(folder: Path, file: str, taken: Set[str]) -> SqlFile:
    name = file.removesuffix(SUFFIX)
    if name in taken:
        also = _problem(file, f"the query {name} is also under queries", "rename one of them")
        return SqlFile(name, problem=also)
    if not NAME.fullmatch(name):
        return SqlFile(name, problem=_problem(file, f"{shown(_text(name))} is not a valid name", NAME_HINT))
    try:
        text = _bytes(folder / file)
        sql = text.decode("utf-8-sig")
    except FileNotFoundError:
        if not os.path.islink(folder / file):
            return SqlFile(name)
        return SqlFile(name, problem=_problem(file, "a link to a file that is not there", "delete or mend the link"))
    except _UnusableFile as unusable:
        return SqlFile(name, problem=_problem(file, str(unusable), "only files with SQL end in .sql here"))
    except UnicodeDecodeError as error:
        wrong = f"byte {error.start + 1} is 0x{error.object[error.start]:02x}, which is not UTF-8"
        return SqlFile(name, problem=_problem(file, f"cannot be read: {wrong}", "save it as UTF-8 text"))
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        return SqlFile(name, problem=_problem(file, why, "see to its permissions, or delete it"))
    if "\0" in sql:
        return SqlFile(name, problem=_problem(file, "expected text, got a NUL byte", "save it as UTF-8 text"))
    if not sql.strip():
        nothing = _problem(file, "expected a SELECT statement, got nothing", "write one, or delete the file")
        return SqlFile(name, problem=nothing, empty=not text)
    return SqlFile(name, sql)


class _UnusableFile(Exception):
    pass


def _stamp(entry: os.DirEntry[str]) -> Stamp:
    try:
        found = entry.stat()
    except OSError:  # a link to nothing, or to itself
        found = entry.stat(follow_symlinks=False)
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _bytes(path: Path) -> bytes:
    # Not blocking: nobody may ever write into a pipe.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = stat.S_IFMT(os.fstat(file).st_mode)
        if kind != stat.S_IFREG:
            raise _UnusableFile(f"expected a file, got {_KINDS.get(kind, 'a device')}")
        with open(file, "rb", closefd=False) as source:
            text = source.read(MOST_BYTES + 1)
    finally:
        os.close(file)
    if len(text) > MOST_BYTES:
        raise _UnusableFile(f"expected at most {MOST_BYTES:,} bytes of SQL, got more")
    return text


def _problem(file: str, message: str, hint: str) -> Mistake:
    return Mistake(f"queries_folder, {_text(file)}", message, hint)


def _text(name: str) -> str:
    """Names of files are bytes; not all of them are text, or fit into a line."""
    text = name.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else shown(text)
