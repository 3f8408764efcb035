"""A folder in which Parquet, CSV or JSON files appear."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from shutil import copyfileobj
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from towpath.errors import StreamError
from towpath.schema import STREAM
from towpath.streams.reading import BadFile, Form, Reject, Unreadable, read

FIELD = pa.field(STREAM, pa.string())
SUBFOLDER = "it is a folder: files are read from the stream's folder itself, not from folders in it"


class Listed(NamedTuple):
    modified: int  # nanoseconds
    path: str
    size: int | None  # None: a folder


@dataclass(frozen=True)
class StoredFile:
    """A file and the span of its event times; a file without rows has an empty span."""

    path: str
    rows: int
    oldest_us: int
    newest_us: int
    size: int | None = 0
    modified: int = 0

    def to_json(self) -> tuple[str | int | None, ...]:
        return astuple(self)


@dataclass(frozen=True)
class Folder:
    """`streams` are those that are read from it: with `part`, by the value of that column, else all rows for each."""

    path: str
    form: Form
    streams: tuple[tuple[str | None, str], ...]  # value and name
    part: str | None = None
    glob: str = "*"

    @property
    def key(self) -> str:
        """Distinguishes folders that are to be read differently, whatever the streams are called."""
        form = self.form
        columns = [(field.name, str(field.type)) for field in form.schema]
        ordered = columns if form.format == "csv" and not form.header else sorted(columns)
        said: list[object] = [self.path, form.format, form.header, form.time, self.part, ordered]
        more: list[object] = [form.delimiter, form.nulls, form.time_format, self.glob]
        more += [form.fields, form.decimals] if form.fields or form.decimals else []
        usual = more == [",", (), None, "*"]  # such a folder keeps the key that it had before there was more to say
        return hashlib.sha256(json.dumps(said if usual else said + more).encode()).hexdigest()[:16]

    def list(self) -> Iterator[Listed]:
        """The files there are now, and folders, which are not read.

        A name that begins with a dot or an underscore is not finished yet.
        """
        filesystem, root = self._filesystem()
        for info in filesystem.get_file_info(pa.fs.FileSelector(root, allow_not_found=True)):
            if not info.base_name.startswith((".", "_")) and fnmatchcase(info.base_name, self.glob):
                is_file = info.type == pa.fs.FileType.File
                yield Listed((info.mtime_ns or 0) if is_file else 0, info.path, info.size if is_file else None)

    def inspect(self, listed: Listed) -> tuple[StoredFile, Sequence[Reject]]:
        """What is good in a file, and what is refused: rows, or the file as a whole. Raises Unreadable."""
        empty = StoredFile(listed.path, 0, 0, 0, listed.size, listed.modified)
        if listed.size is None:
            return empty, [Reject(None, SUBFOLDER, rows=0)]
        try:
            with self._local(listed.path) as local:
                table, rejects = read(local, self.form)
        except Unreadable:
            raise
        except BadFile as error:
            return empty, [Reject(None, f"not a {self.form.format} file of these columns: {error}", rows=0)]
        times = self._by_stream(table).column(1 + table.schema.get_field_index(self.form.time))
        span = pc.min_max(times.cast(pa.int64()))
        if not span["min"].is_valid:
            return empty, rejects
        oldest, newest = span["min"].as_py(), span["max"].as_py()
        return StoredFile(listed.path, table.num_rows, oldest, newest, listed.size, listed.modified), rejects

    def read(self, file: StoredFile, after_us: int, until_us: int) -> pa.Table:
        """The rows with after < time <= until, with the stream's name in front."""
        try:
            with self._local(file.path) as local:
                table, _ = read(local, self.form)
        except FileNotFoundError as error:
            raise StreamError(
                f"{file.path}: this file was taken in and is gone, and its rows are needed "
                "-> put it back, and start the job again"
            ) from error
        except BadFile as error:
            raise StreamError(
                f"{file.path}: this file was taken in and cannot be read any more, and its rows are needed: {error} "
                "-> put it back as it was, and start the job again"
            ) from error
        if not (after_us < file.oldest_us and file.newest_us <= until_us):
            micros = table.column(self.form.time).cast(pa.int64())
            table = table.filter(pc.and_(pc.greater(micros, after_us), pc.less_equal(micros, until_us)))
        return self._by_stream(table)

    def _by_stream(self, table: pa.Table) -> pa.Table:
        """The rows that belong to streams, once for each."""
        if self.part is None:
            return pa.concat_tables([_named(table, pa.repeat(name, table.num_rows)) for _, name in self.streams])
        values = table.column(self.part).cast(pa.string())
        tables = []
        for layer in _layers(self.streams):
            places = pc.index_in(values, pa.array(layer, pa.string()))
            found = pc.is_valid(places)
            names = pa.array(layer.values(), pa.string()).take(places.filter(found).combine_chunks())
            tables.append(_named(table.filter(found), names))
        return pa.concat_tables(tables)

    @contextmanager
    def _local(self, path: str) -> Iterator[str]:
        """The file on this machine, under a name that ends as its own: that says whether it is compressed."""
        filesystem, _ = self._filesystem()
        if isinstance(filesystem, pa.fs.LocalFileSystem):
            yield path
            return
        with (
            tempfile.NamedTemporaryFile(suffix=Path(path).name) as copy,
            filesystem.open_input_stream(path, compression=None) as remote,
        ):
            copyfileobj(remote, copy)
            copy.flush()
            yield copy.name

    def _filesystem(self) -> tuple[pa.fs.FileSystem, str]:
        if "://" in self.path:
            filesystem, root = pa.fs.FileSystem.from_uri(self.path.replace("s3a://", "s3://", 1))
            return filesystem, root
        return pa.fs.LocalFileSystem(), self.path


def _named(table: pa.Table, names: pa.Array) -> pa.Table:
    return table.add_column(0, FIELD, names)


def _layers(streams: Sequence[tuple[str | None, str]]) -> Sequence[Mapping[str, str]]:
    """Streams by their value, in as many tables as there are streams of the same value."""
    layers: list[dict[str, str]] = []
    for value, name in streams:
        layer = next((known for known in layers if value not in known), None)
        if layer is None:
            layers.append(layer := {})
        layer[str(value)] = name
    return layers
