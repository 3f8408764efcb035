"""A folder in which Parquet, CSV or JSON files appear, read with Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.fs
import pyarrow.json
import pyarrow.parquet as pq


@dataclass(frozen=True)
class StoredFile:
    """A file and the span of its event times; a file without rows has an empty span."""

    path: str
    rows: int
    oldest_us: int
    newest_us: int

    def to_json(self) -> tuple[str, int, int, int]:
        return astuple(self)


@dataclass(frozen=True)
class Folder:
    path: str
    format: str
    schema: pa.Schema
    time: str
    header: bool = True

    def list(self) -> Iterator[tuple[str, int]]:
        """The files there are now, with their time of modification. Names that begin with a dot or underscore are not finished yet."""
        filesystem, root = self._filesystem()
        for info in filesystem.get_file_info(pa.fs.FileSelector(root, allow_not_found=True)):
            if info.type == pa.fs.FileType.File and not info.base_name.startswith((".", "_")):
                yield info.path, info.mtime_ns or 0

    def inspect(self, path: str) -> StoredFile:
        times = self._times(path)
        span = pc.min_max(times)
        if not span["min"].is_valid:
            return StoredFile(path, 0, 0, 0)
        return StoredFile(path, len(times), span["min"].as_py(), span["max"].as_py())

    def read(self, file: StoredFile, after_us: int, until_us: int) -> pa.Table:
        """The rows with after < time <= until; a row without a time belongs nowhere and is left out."""
        table = self._load(file.path)
        if after_us < file.oldest_us and file.newest_us <= until_us and table.column(self.time).null_count == 0:
            return table
        micros = table.column(self.time).cast(pa.int64())
        return table.filter(pc.and_(pc.greater(micros, after_us), pc.less_equal(micros, until_us)))

    def _times(self, path: str) -> pa.ChunkedArray:
        filesystem, _ = self._filesystem()
        if self.format == "parquet":
            column = pq.read_table(path, columns=[self.time], filesystem=filesystem).column(self.time)
            column = column.cast(self.schema.field(self.time).type)
        else:
            column = self._load(path).column(self.time)
        return column.cast(pa.int64())

    def _load(self, path: str) -> pa.Table:
        filesystem, _ = self._filesystem()
        if self.format == "parquet":
            table = pq.read_table(path, columns=self.schema.names, filesystem=filesystem)
            return table.select(self.schema.names).cast(self.schema)
        with filesystem.open_input_stream(path) as stream:
            if self.format == "csv":
                return self._read_csv(stream)
            options = pa.json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="ignore")
            return pa.json.read_json(stream, parse_options=options).select(self.schema.names).cast(self.schema)

    def _read_csv(self, stream: pa.NativeFile) -> pa.Table:
        names = None if self.header else self.schema.names
        table = pa.csv.read_csv(
            stream,
            read_options=pa.csv.ReadOptions(column_names=names),
            convert_options=pa.csv.ConvertOptions(
                column_types=self.schema,
                include_columns=self.schema.names,
                include_missing_columns=True,
                strings_can_be_null=True,
            ),
        )
        return table.cast(self.schema)

    def _filesystem(self) -> tuple[pa.fs.FileSystem, str]:
        if "://" in self.path:
            filesystem, root = pa.fs.FileSystem.from_uri(self.path)
            return filesystem, root
        return pa.fs.LocalFileSystem(), self.path
