"""Feeds the sinks that queries name for themselves from the log, exactly once.

A step is written down before it is done: up to which position, under which name. After a crash the same step is done
again, with the same rows since a log never changes what a batch holds, and a sink that has it already leaves it.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from towpath.errors import StoreError
from towpath.results.log import Part, Position
from towpath.results.look import Look
from towpath.results.read import Which, batches, read
from towpath.results.sinks.base import Sink, SinkStep
from towpath.store import durable


@dataclass(frozen=True)
class SinkState:
    """How far a sink was fed, and the step that was begun and perhaps not finished."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    position: Position = field(default_factory=Position)
    steps: int = 0
    begun: Position | None = None
    begun_ms: int = 0


class SinkFeeder:
    """Feeds one query's sink.

    Without a state file it starts from the beginning each time, which suits a sink that dies with the process.
    """

    def __init__(self, query: str, sink: Sink, state_file: Path | None, *, ordered: bool = False) -> None:
        """`ordered`: the rows of a step are in the order of result time, and always in the same."""
        self.query = query
        self.sink = sink
        self._ordered = ordered
        self._file = state_file
        self._state = _load(state_file) if state_file else SinkState()

    @property
    def position(self) -> Position:
        return self._state.position

    def is_behind(self, parts: Sequence[Part], look: Look) -> bool:
        """Whether there may be something to write."""
        return self._state.begun is not None or any(look.behind(part, self.position) for part in parts)

    def feed(
        self, parts: Sequence[Part], unchanged: Callable[[], bool] = lambda: True, look: Look | None = None
    ) -> int:
        """Write everything that is new; the number of rows is returned.

        `unchanged` says whether the parts are still those of the query; `look` is shared with other sinks.
        """
        rows = 0
        if self._state.begun:
            # Whatever was set since, these rows may have been given already.
            after, upto = self._state.position, self._state.begun
            table = read(parts, after=after, upto=upto, with_time=self._ordered, which=Which.ALL)
            rows += self._finish(table, self._state.begun, repeated=True)
        for chunk in batches(parts, self._state.position, unchanged, with_time=self._ordered, look=look):
            if chunk.table.num_rows:
                self._save(replace(self._state, begun=chunk.position, begun_ms=time.time_ns() // 1_000_000))
                rows += self._finish(chunk.table, chunk.position, repeated=False)
            else:
                # Not worth a write: after a restart the same nothing is read again.
                self._state = replace(self._state, position=chunk.position)
        return rows

    def _finish(self, table: pa.Table, position: Position, *, repeated: bool) -> int:
        name = self._step_name(position)
        table = in_order(table) if self._ordered else table
        self.sink.write(table, SinkStep(self._state.id, name, self._state.begun_ms, repeated, self.query))
        self._save(SinkState(self._state.id, position, self._state.steps + 1))
        return int(table.num_rows)

    def _step_name(self, position: Position) -> str:
        """The same for the same rows only: also when a store was deleted and begun anew beside its sink's old files."""
        base = self._base
        content = json.dumps([self._state.id, self._state.position.to_json(base), position.to_json(base)])
        return f"{self.query}-{self._state.steps:09d}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"

    @property
    def _base(self) -> Path:
        return self._file.parent if self._file else Path.cwd()

    def _save(self, state: SinkState) -> None:
        if self._file:
            durable.write_json(self._file, _to_json(state, self._base))
        self._state = state


def in_order(table: pa.Table) -> pa.Table:
    """By the last column, which goes, and where that is the same by the others: a log says nothing of their order."""
    named = table.rename_columns([str(n) for n in range(table.num_columns)])
    names = [named.column_names[-1], *named.column_names[:-1]]
    order = pc.sort_indices(named, sort_keys=[(name, "ascending") for name in names])
    return table.take(order).remove_column(table.num_columns - 1)


def _to_json(state: SinkState, base: Path) -> dict[str, Any]:
    return {
        "id": state.id,
        "position": state.position.to_json(base),
        "steps": state.steps,
        "begun": state.begun.to_json(base) if state.begun else None,
        "begun_ms": state.begun_ms,
    }


def _load(file: Path) -> SinkState:
    if not file.exists():
        return SinkState()
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        begun = Position.from_json(data["begun"], file.parent) if data["begun"] else None
        position = Position.from_json(data["position"], file.parent)
        return SinkState(data["id"], position, data["steps"], begun, data.get("begun_ms", 0))
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{file}: expected the position of a sink as JSON: {type(error).__name__}: {error}\n"
            "    -> restore the file; or delete it and the sink's output, which is then written again from the log"
        ) from error
