"""What all sinks have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import pyarrow as pa

from towpath.config.settings import Settings


@dataclass(frozen=True)
class SinkStep:
    sink: str  # names the sink of one query of one store, for as long as the store lives
    name: str  # the same for the same rows only
    begun_ms: int  # when it was begun for the first time
    repeated: bool  # it was begun before, and perhaps done
    query: str = ""


class SinkWaits(Exception):
    """Nothing is wrong, and the rest of the step is not to be written yet."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:.1f} s")
        self.seconds = seconds


class Sink(Protocol):
    def write(self, table: pa.Table, step: SinkStep) -> None:
        """Take the rows of a step. Raises SinkWaits if some have to come later.

        The same step comes a second time only after that, a crash or a failure, and with the same rows.
        """


class SinkDef(Settings):
    """A sink as a job file defines it. The journal keeps its `record`, and the other methods are given that."""

    lasting: ClassVar[bool] = True  # what it has outlives the process
    ordered: ClassVar[bool] = False  # a step that comes again is to have its rows in the same order, too
    folder_key: ClassVar[str] = "path"  # what the folder is called in a job file

    def record(self) -> dict[str, str]:
        """Names and texts."""
        values = self.model_dump()
        return values.pop("options", {}) | {key: str(value) for key, value in values.items()}

    @property
    def folder(self) -> Path | None:
        """The folder that it writes into, which nobody else may."""
        return None

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it names, which its query must have."""
        return frozenset()

    @classmethod
    def open(cls, record: Mapping[str, str]) -> Sink:
        raise NotImplementedError

    @classmethod
    def identity(cls, record: Mapping[str, str]) -> Mapping[str, str]:
        """What stays the same as long as it is the same sink: one that a query comes back to goes on."""
        return record

    @classmethod
    def lane(cls, record: Mapping[str, str]) -> str:
        """Sinks of a lane are held up together, and hold up nobody else."""
        return record["type"]
