"""Messages of a topic as rows: what each means, and where those go that are none. For Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from towpath.streams.fields import Decimals, Fields
from towpath.streams.reading import Form, read_messages
from towpath.streams.rejected import BadMessage, TopicLetters

KEY, PARTITION, OFFSET, VALUE = "_key", "partition", "offset", "value"


@dataclass(frozen=True)
class MessageReader:
    """Reads batches of messages: their key, partition, offset and value. The rows come with the key of each."""

    topic: str
    streams: Sequence[str]  # that the messages are read for
    schema: bytes  # of the rows, as Arrow writes it
    time: str
    names: Sequence[str]  # of the columns that come out
    rejected: str  # the folder for messages that are refused
    time_format: str | None = None
    fields: Fields = ()
    decimals: Decimals = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        form = Form("json", schema, self.time, time_format=self.time_format, fields=self.fields, decimals=self.decimals)
        letters = TopicLetters(Path(self.rejected), self.topic, form.schema, self.time, self.streams)
        for batch in batches:
            rows, places, rejects = read_messages(batch.column(VALUE).to_pylist(), form)
            partitions, offsets = batch.column(PARTITION), batch.column(OFFSET)
            letters.write(
                BadMessage(partitions[r.line].as_py(), offsets[r.line].as_py(), r.reason, r.text)
                for r in rejects
                if r.line is not None
            )
            keys = batch.column(KEY).take(pa.array(places, pa.int64()))
            table = pa.table([keys, *rows.columns], [KEY, *self.names])
            yield from table.combine_chunks().to_batches()
