"""Messages of a topic: each means what the same text means as a line of a file, and the bad ones are written down."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from towpath.streams.messages import KEY, OFFSET, PARTITION, VALUE, MessageReader
from towpath.streams.reading import Form, read, read_messages
from towpath.streams.rejected import rejected

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("x", pa.float64()),
        ("tag", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
FORM = Form("json", SCHEMA, "at")
GOOD = '{"k": 1, "x": 0.5, "tag": "a", "day": "2026-01-01", "at": "2026-01-01T00:00:00Z"}'
TEXTS = [
    GOOD,
    '{"at": "2026-01-01 00:00:00"}',
    '{"k": "7", "x": 1, "tag": {"deep": [1]}, "at": "2026-01-01T00:00:00+02:00"}',
    '{"k": 1.5, "at": "2026-01-01"}',
    '{"K": 1, "at": "2026-01-01", "more": true}',
    '{"x": "NaN", "day": null, "at": "2026-01-01"}',
    '{"k": "one", "at": "2026-01-01"}',
    '{"k": 1, "k": 2, "at": "2026-01-01"}',
    '{"k": 1, "at": 1767225600}',
    '{"k": 1, "at": null}',
    '{"k": 1, "at": "infinity"}',
    '{"k": 1}',
    "no JSON",
    '{"k": 1, "at": "2026-01-01"} {}',
    "[1]",
    "null",
    "",
    "  ",
]


@pytest.mark.parametrize("texts", [[GOOD, GOOD], TEXTS, *([text] for text in TEXTS)])
def test_a_message_means_what_a_line_of_a_file_means(tmp_path: Path, texts: list[str]) -> None:
    file = tmp_path / "lines.json"
    file.write_text("\n".join(texts))
    rows, places, rejects = read_messages([text.encode() for text in texts], FORM)
    expected, refused = read(str(file), FORM)
    assert str(rows.to_pylist()) == str(expected.to_pylist())  # NaN is equal to none
    assert [(r.line, r.reason, r.text) for r in rejects] == [((r.line or 0) - 1, r.reason, r.text) for r in refused]
    refused_places = {reject.line for reject in rejects}
    assert places == [n for n, text in enumerate(texts) if text.strip() and n not in refused_places]


def test_a_message_may_have_several_lines_and_none_is_no_row() -> None:
    spread = json.dumps(json.loads(GOOD), indent=1).encode()
    rows, places, rejects = read_messages([spread, None, b"\xef\xbb\xbf" + GOOD.encode(), b"\xff\n"], FORM)
    assert (rows["k"].to_pylist(), places) == ([1, 1], [2, 0])
    assert [(reject.line, reject.reason) for reject in rejects] == [(3, "not UTF-8: invalid start byte")]


def batch(*messages: tuple[int, int, str | None]) -> pa.RecordBatch:
    partitions, offsets, values = zip(*messages, strict=True)
    columns = {
        KEY: pa.array([f"key {offset}" for offset in offsets], pa.string()),
        PARTITION: pa.array(partitions, pa.int32()),
        OFFSET: pa.array(offsets, pa.int64()),
        VALUE: pa.array([None if value is None else value.encode() for value in values], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def test_bad_messages_are_written_down_once_however_they_are_read(tmp_path: Path) -> None:
    def reader(*streams: str) -> MessageReader:
        names = [f"c{n}" for n in range(len(SCHEMA))]
        return MessageReader("orders", streams, SCHEMA.serialize().to_pybytes(), "at", names, str(tmp_path))

    messages = [(0, 7, GOOD), (0, 8, "no JSON"), (1, 7, None), (1, 8, "{}"), (1, 9, GOOD)]
    for pieces in ([messages], [messages[:2], messages[2:]], [messages]):
        made = [
            row for piece in reader("a", "b")(iter([batch(*piece) for piece in pieces])) for row in piece.to_pylist()
        ]
        assert [(row[KEY], row["c0"]) for row in made] == [("key 7", 1), ("key 9", 1)]
    found = list(rejected(tmp_path))
    assert [(r.streams, r.topic, r.partition, r.offset, r.reason, r.text, r.rows) for r in found] == [
        (("a", "b"), "orders", 0, 8, "not JSON", "no JSON", 1),
        (("a", "b"), "orders", 1, 8, "it has no event time in the column at", "{}", 1),
    ]
    assert [(r.file, r.line) for r in found] == [("topic orders, partition 0", 8), ("topic orders, partition 1", 8)]
