"""What reading a feed and reading a link have in common: positions as offsets, and slices dealt out to partitions."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType


class SlicePosition(Protocol):
    def to_json(self) -> dict[str, Any]: ...


class Slice(Protocol):
    @property
    def rows(self) -> int: ...


P = TypeVar("P", bound=SlicePosition)
S = TypeVar("S", bound=Slice)


class SliceFeed(Protocol[P]):
    def advance(self, start: P) -> P: ...


F = TypeVar("F", bound=SliceFeed[Any])


class SliceReader(DataSourceStreamReader, Generic[F]):
    def __init__(self, spec: dict[str, Any], parallelism: int) -> None:
        self._spec = spec
        self._parallelism = parallelism
        self._feed: F | None = None

    @abstractmethod
    def open(self, spec: dict[str, Any]) -> F: ...

    @abstractmethod
    def position(self, offset: dict[str, Any]) -> Any:
        """The place that an offset stands for; the beginning if it is empty."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_feed": None}  # a worker opens its own

    @property
    def feed(self) -> F:
        if self._feed is None:
            self._feed = self.open(self._spec)
        return self._feed

    def initialOffset(self) -> dict[str, Any]:
        offset: dict[str, Any] = self.position({}).to_json()
        return offset

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        offset: dict[str, Any] = self.feed.advance(self.position(start)).to_json()
        return offset

    def dealt(self, slices: Sequence[S]) -> list[list[S]]:
        """The slices for each partition: the largest first, to whoever has the least."""
        shares: list[list[S]] = [[] for _ in range(min(self._parallelism, len(slices)))]
        for piece in sorted(slices, key=lambda s: -s.rows):
            min(shares, key=lambda share: sum(s.rows for s in share)).append(piece)
        return shares


class SliceSource(DataSource):
    """Options: spec (JSON, see `inputs.py`), schema (DDL), parallelism."""

    reads_with: type[SliceReader[Any]]

    def schema(self) -> str:
        return self.options["schema"]

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return self.reads_with(json.loads(self.options["spec"]), int(self.options["parallelism"]))
