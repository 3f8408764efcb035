"""A folder in which Parquet, CSV or JSON files appear, read with Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.fs
import pyarrow.json
import pyarrow.parquet as pq

from towpath.errors import StreamError

UTC_US = pa.timestamp("us", tz="UTC")


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
    part: tuple[str, str] | None = None  # only rows with this text in this column

    def list(self) -> Iterator[tuple[str, int]]:
        """The files there are now, with their time of modification.

        A name that begins with a dot or an underscore is not finished yet.
        """
        filesystem, root = self._filesystem()
        for info in filesystem.get_file_info(pa.fs.FileSelector(root, allow_not_found=True)):
            if info.type == pa.fs.FileType.File and not info.base_name.startswith((".", "_")):
                yield info.path, info.mtime_ns or 0

    def inspect(self, path: str) -> StoredFile:
        times = self._load(path, [self.time]).column(self.time).cast(pa.int64())
        span = pc.min_max(times)
        if not span["min"].is_valid:
            return StoredFile(path, 0, 0, 0)
        return StoredFile(path, len(times), span["min"].as_py(), span["max"].as_py())

    def read(self, file: StoredFile, after_us: int, until_us: int) -> pa.Table:
        """The rows with after < time <= until; a row without a time belongs nowhere and is left out."""
        table = self._load(file.path, self.schema.names)
        if after_us < file.oldest_us and file.newest_us <= until_us and table.column(self.time).null_count == 0:
            return table
        micros = table.column(self.time).cast(pa.int64())
        return table.filter(pc.and_(pc.greater(micros, after_us), pc.less_equal(micros, until_us)))

    def _load(self, path: str, names: Sequence[str]) -> pa.Table:
        if self.part is None:
            return self._load_all(path, names)
        column, value = self.part
        table = self._load_all(path, tuple(dict.fromkeys([*names, column])))
        return table.filter(pc.equal(table.column(column).cast(pa.string()), value)).select(names)

    def _load_all(self, path: str, names: Sequence[str]) -> pa.Table:
        schema = pa.schema([self.schema.field(name) for name in names])
        filesystem, _ = self._filesystem()
        try:
            if self.format == "parquet":
                return (
                    pq.read_table(path, columns=schema.names, filesystem=filesystem).select(schema.names).cast(schema)
                )
            # As with Spark's own readers, an empty file has no rows.
            if filesystem.get_file_info(path).size == 0:
                return schema.empty_table()
            with filesystem.open_input_stream(path) as stream:
                text = self._read_csv(stream, schema) if self.format == "csv" else _read_json(stream, schema)
            return _from_text(text, schema)
        except FileNotFoundError as error:
            raise StreamError(
                f"{path}: this file was taken in and is gone, and its rows are needed "
                "-> put it back, and start the job again"
            ) from error
        except (pa.ArrowException, OSError, KeyError) as error:
            reason = str(error).strip().splitlines()[0]
            raise StreamError(
                f"{path}: expected a {self.format} file with the columns {', '.join(names)}: {reason} "
                "-> repair it, or move it away if the job has not taken it in yet, and start the job again"
            ) from error

    def _read_csv(self, stream: pa.NativeFile, schema: pa.Schema) -> pa.Table:
        return pa.csv.read_csv(
            stream,
            read_options=pa.csv.ReadOptions(column_names=None if self.header else self.schema.names),
            convert_options=pa.csv.ConvertOptions(
                column_types=_as_text(schema),
                include_columns=schema.names,
                include_missing_columns=True,
                strings_can_be_null=True,
            ),
        )

    def _filesystem(self) -> tuple[pa.fs.FileSystem, str]:
        if "://" in self.path:
            filesystem, root = pa.fs.FileSystem.from_uri(self.path)
            return filesystem, root
        return pa.fs.LocalFileSystem(), self.path


def _read_json(stream: pa.NativeFile, schema: pa.Schema) -> pa.Table:
    options = pa.json.ParseOptions(explicit_schema=_as_text(schema), unexpected_field_behavior="ignore")
    return pa.json.read_json(stream, parse_options=options).select(schema.names)


def _as_text(schema: pa.Schema) -> pa.Schema:
    """Arrow's readers want a zone behind every timestamp of CSV, and take no dates of JSON; its casts are milder."""
    return pa.schema([(f.name, pa.string() if pa.types.is_temporal(f.type) else f.type) for f in schema])


def _from_text(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        _timestamps(table.column(f.name)) if f.type == UTC_US else table.column(f.name).cast(f.type) for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _timestamps(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return texts.cast(UTC_US)
    except pa.ArrowInvalid:
        # Without a zone, which means UTC.
        return texts.cast(pa.timestamp("us")).cast(UTC_US)
