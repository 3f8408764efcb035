"""Fields of structs as columns, and columns from fields of other names: in the job file, and in all that is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from towpath.errors import JobError
from towpath.job import Job, load
from towpath.streams.fields import Fields
from towpath.streams.files import Folder
from towpath.streams.intake import Intake
from towpath.streams.messages import KEY, OFFSET, PARTITION, VALUE, MessageReader
from towpath.streams.reading import BadFile, Form, missing_columns, read, read_messages
from towpath.streams.rejected import DeadLetters, rejected
from towpath.streams.versions import StreamVersion, carried_on

FILES = {"type": "files", "path": "./f", "format": "json"}
KAFKA = {"type": "kafka", "servers": "localhost:9092", "topic": "t"}
USER = {"user": {"id": "bigint", "name": {"first": "string"}}, "at": "timestamp"}


def job(folder: Path, source: dict[str, Any], schema: dict[Any, Any], time: str = "at") -> Job:
    (folder / "f").mkdir(exist_ok=True)
    (folder / "job.yaml").write_text(
        yaml.safe_dump({"streams": {"s": {"source": source, "schema": schema, "time": time}}})
    )
    return load(folder / "job.yaml")


@pytest.mark.parametrize("source", [FILES, KAFKA])
def test_fields_of_structs_are_columns_called_by_their_path(tmp_path: Path, source: dict[str, Any]) -> None:
    definition = job(tmp_path, source, USER).streams["s"]
    assert [c.name for c in definition.stream.columns] == ["at", "user.id", "user.name.first"]
    assert definition.source.model_dump()["fields"] == {
        "user.id": ("user", "id"),
        "user.name.first": ("user", "name", "first"),
    }


def test_a_column_and_a_struct_come_from_other_fields(tmp_path: Path) -> None:
    fields = {"user": "payload.user", "at": ["meta", "ts.x"], "plain.name": ["plain.name"]}
    schema = {"user": {"id": "bigint"}, "plain.name": "int", "at": "timestamp"}
    definition = job(tmp_path, FILES | {"fields": fields}, schema).streams["s"]
    assert definition.source.model_dump()["fields"] == {"user.id": ("payload", "user", "id"), "at": ("meta", "ts.x")}


@pytest.mark.parametrize(
    ("source", "schema", "problem"),
    [
        ({"fields": {"nope": "a"}}, USER, 'schema: there is no column "nope", which fields names'),
        ({"fields": {"user": "a..b"}}, USER, 'source.fields.user: "a..b" is no field'),
        ({"fields": {"user": 5}}, USER, "source.fields.user: expected a field, got 5"),
        ({"fields": {"x": "user.id"}}, USER | {"x": "int"}, "schema: user.id and x come from the same field, user.id"),
        (
            {"fields": {"x": "user"}},
            USER | {"x": "string"},
            "schema: x is the whole of user, and user.id a field in it",
        ),
        ({"fields": {"x": "USER.y"}}, USER | {"x": "int"}, "come from fields that differ only in case: user and USER"),
        ({}, USER | {"user.id": "int"}, "schema: user.id is a column and a field of a struct"),
        ({}, {"u": {"a": "int", "A": "int"}, "at": "timestamp"}, "schema: these columns differ only in case: u.A, u.a"),
        ({}, {"u": {}, "at": "timestamp"}, "schema: u is a struct without fields"),
        ({}, {"u": {"a": "bigin"}, "at": "timestamp"}, 'schema.u.a: "bigin" is not a known type of a column'),
        ({}, {"u": {"\x1f": "int"}, "at": "timestamp"}, "schema: not names of columns"),
        ({}, {"u": {"type": "int", "from": "a.b"}, "at": "timestamp"}, "in the source"),
        ({}, {"u": ["string"], "at": "timestamp"}, "lists are missing"),
        ({"format": "csv"}, USER, "schema: user.id comes from a struct, which a csv file does not have"),
        ({"format": "csv", "fields": {"at": "a.b"}}, {"at": "timestamp"}, "schema: at comes from a struct"),
        (
            {"format": "csv", "header": False, "fields": {"at": "b"}},
            {"at": "timestamp"},
            "schema: a csv file without a header has no names that fields could mean",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, source: dict[str, Any], schema: dict[Any, Any], problem: str
) -> None:
    with pytest.raises(JobError) as caught:
        job(tmp_path, FILES | source, schema)
    assert problem in str(caught.value)


def test_all_mistakes_of_a_struct_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(JobError) as caught:
        job(tmp_path, FILES, {"u": {"a": "bigin", "b": {"c": "strng"}}, "at": "timestamp"})
    assert [problem.where for problem in caught.value.problems] == ["streams.s.schema.u.a", "streams.s.schema.u.b.c"]


SCHEMA = pa.schema(
    [
        ("user.id", pa.int64()),
        ("user.name.first", pa.string()),
        ("price", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
FIELDS: Fields = (
    ("at", ("meta", "at")),
    ("price", ("Preis (EUR)",)),
    ("user.id", ("user", "id")),
    ("user.name.first", ("user", "name", "first")),
)
TIME = '"meta": {"at": "2026-01-01T00:00:01Z"}'
NONE = (None, None, None)
# What each line is: the columns before the event time, or why it is refused.
LINES: list[tuple[str, tuple[Any, ...] | str]] = [
    (f'{{"user": {{"id": 1, "name": {{"first": "a", "last": "b"}}}}, "Preis (EUR)": 1.5, {TIME}}}', (1, "a", 1.5)),
    (f'{{"user": null, {TIME}}}', NONE),
    (f"{{{TIME}}}", NONE),
    (f'{{"user": {{}}, {TIME}}}', NONE),
    (f'{{"user": {{"name": null, "id": "7"}}, {TIME}}}', (7, None, None)),
    (f'{{"user": {{"name": {{"first": {{"x": [1]}}}}}}, {TIME}}}', (None, '{"x":[1]}', None)),
    (f'{{"user": {{"ID": 1}}, "price": 2, "id": 3, {TIME}}}', NONE),
    (f'{{"user": {{"other": 1, "other": 2, "id": 4}}, {TIME}}}', (4, None, None)),
    (f'{{"user": 5, {TIME}}}', "user: expected an object, got ubigint"),
    (f'{{"user": [1], {TIME}}}', "user: expected an object, got array"),
    (f'{{"user": "{{}}", {TIME}}}', "user: expected an object, got varchar"),
    (f'{{"user": {{"name": "bob"}}, {TIME}}}', "user.name: expected an object, got varchar"),
    (f'{{"user": {{"id": "x"}}, {TIME}}}', 'column user.id: no BIGINT: "x"'),
    (f'{{"user": {{"id": 1, "id": 2}}, {TIME}}}', "the key user.id comes twice"),
    (f'{{"user": {{"id": 1}}, "user": {{"id": 2}}, {TIME}}}', "the key user comes twice"),
    ('{"user": {"id": 1}, "at": "2026-01-01"}', "it has no event time in the column at"),
    ('{"user": {"id": 1}, "meta": {}}', "it has no event time in the column at"),
    ('{"meta": {"at": 5}}', "column at: no TIMESTAMPTZ: 5"),
]
GOOD = [expected for _, expected in LINES if isinstance(expected, tuple)]
BAD = [(n, expected) for n, (_, expected) in enumerate(LINES) if isinstance(expected, str)]


def values(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[:3] for row in table.to_pylist()]


def test_lines_of_json(tmp_path: Path) -> None:
    file, form = tmp_path / "lines.json", Form("json", SCHEMA, "at", fields=FIELDS)
    file.write_text("\n".join(line for line, _ in LINES))
    table, rejects = read(str(file), form)
    assert values(table) == GOOD
    assert [((reject.line or 0) - 1, reject.reason) for reject in rejects] == BAD


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_a_line_alone_means_the_same(tmp_path: Path, line: str, expected: tuple[Any, ...] | str) -> None:
    """A file without a bad line is read as a whole, and not line by line."""
    file = tmp_path / "line.json"
    file.write_text(line)
    table, rejects = read(str(file), Form("json", SCHEMA, "at", fields=FIELDS))
    assert values(table) == ([expected] if isinstance(expected, tuple) else [])
    assert [reject.reason for reject in rejects] == ([expected] if isinstance(expected, str) else [])


def test_messages_mean_the_same(tmp_path: Path) -> None:
    texts = [line.encode() for line, _ in LINES]
    rows, _, rejects = read_messages(texts, Form("json", SCHEMA, "at", fields=FIELDS))
    assert values(rows) == GOOD
    assert [(reject.line, reject.reason) for reject in rejects] == BAD

    about = (["s"], SCHEMA.serialize().to_pybytes(), "at", ["a", "b", "c", "d"], str(tmp_path))
    reader = MessageReader("t", *about, fields=FIELDS)
    batch = pa.record_batch(
        {KEY: ["k"] * len(texts), PARTITION: [0] * len(texts), OFFSET: range(len(texts)), VALUE: texts}
    )
    found = pa.Table.from_batches(reader(iter([batch])))
    assert values(found.select(["a", "b", "c"])) == GOOD
    assert [(message.offset, message.reason) for message in rejected(tmp_path)] == BAD


def test_times_within_structs_may_be_numbers(tmp_path: Path) -> None:
    file = tmp_path / "lines.json"
    file.write_text('{"meta": {"at": 1767225601000}}\n{"meta": {"at": 99999999999999999}}')
    table, rejects = read(str(file), Form("json", SCHEMA, "at", time_format="epoch ms", fields=FIELDS))
    assert table["at"].cast(pa.int64()).to_pylist() == [1_767_225_601_000_000]
    assert [reject.reason for reject in rejects] == [
        "column at: as epoch ms beyond the years 1 to 9999: 99999999999999999"
    ]


NAME = pa.struct([("first", pa.string())])
META = pa.struct([("at", pa.timestamp("us", tz="UTC"))])


def parquet(path: Path, users: pa.Array, prices: pa.Array, times: list[int | None]) -> None:
    meta = pa.array([{"at": time} for time in times], META)
    pq.write_table(pa.table({"User": users, "Preis (EUR)": prices, "meta": meta}), path)


def test_structs_of_parquet(tmp_path: Path) -> None:
    """Types that differ are cast, names are in any case, and what has no event time is refused."""
    user = pa.struct([("id", pa.int32()), ("NAME", NAME)])
    users = pa.array([{"id": 1, "NAME": {"first": "a"}}, None, {"id": 2, "NAME": None}, {"id": 3}], user)
    parquet(tmp_path / "a.parquet", users, pa.array([1, None, 2, 3], pa.int16()), [5, 6, 7, None])
    table, rejects = read(str(tmp_path / "a.parquet"), Form("parquet", SCHEMA, "at", fields=FIELDS))
    assert values(table) == [(1, "a", 1.0), NONE, (2, None, 2.0)]
    assert [(reject.line, reject.reason) for reject in rejects] == [(4, "it has no event time in the column at")]


def test_parquet_without_the_struct_or_with_something_else(tmp_path: Path) -> None:
    form = Form("parquet", SCHEMA, "at", fields=FIELDS)
    parquet(tmp_path / "a.parquet", pa.array([1, None]), pa.array(["x", "1.5"]), [5, 6])
    table, rejects = read(str(tmp_path / "a.parquet"), form)
    assert values(table) == [(None, None, 1.5)]
    assert [(reject.line, reject.reason) for reject in rejects] == [(1, "column price: not a value of type DOUBLE")]

    parquet(tmp_path / "b.parquet", pa.array([1, None]), pa.array([1.0, 2.0]), [5, 6])
    table, rejects = read(str(tmp_path / "b.parquet"), form)
    assert values(table) == [(None, None, 2.0)]
    assert [(reject.line, reject.reason) for reject in rejects] == [(1, "user: expected a struct, got BIGINT")]

    pq.write_table(pa.table({"other": [1]}), tmp_path / "c.parquet")
    with pytest.raises(BadFile, match="it has no column at"):
        read(str(tmp_path / "c.parquet"), form)
    pq.write_table(pa.table({"meta": pa.array([{"at": 5}], META)}), tmp_path / "d.parquet")
    assert values(read(str(tmp_path / "d.parquet"), form)[0]) == [NONE]


def test_spark_is_given_structs_as_columns_and_columns_by_their_names(tmp_path: Path) -> None:
    """Also a file that has the names and types of the schema, and means something else by one of them."""
    schema = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
    (tmp_path / "f").mkdir()
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": [1], "y": [2], "at": [3]}, schema=schema), tmp_path / "f" / "a.parquet")
    folder = Folder(
        str(tmp_path / "f"), Form("parquet", schema, "at", fields=(("x", ("y",)), ("y", ("x",)))), ((None, "s"),)
    )
    Intake(folder, tmp_path / "in", DeadLetters(tmp_path / "bad", folder.key, ["s"])).sweep()
    (file,) = (tmp_path / "in").glob("*.parquet")
    assert pq.read_table(file).select(["x", "y"]).to_pylist() == [{"x": 2, "y": 1}]


def test_csv_takes_columns_by_the_names_of_its_header(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("at", pa.timestamp("us", tz="UTC"))])
    fields: Fields = (("at", ("id",)), ("id", ("user.id",)), ("price", ("Preis (EUR)",)))
    file = tmp_path / "a.csv"
    file.write_text("ID,Preis (EUR),user.id\n2026-01-01,1.5,7\n2026-01-01,x,8\n")
    table, rejects = read(str(file), Form("csv", schema, "at", fields=fields))
    assert [(row["id"], row["price"]) for row in table.to_pylist()] == [(7, 1.5)]
    assert [reject.line for reject in rejects] == [3]
    file.write_text("ID,user.id\n2026-01-01,7\n")
    assert missing_columns(str(file), Form("csv", schema, "at", fields=fields)) == ["Preis (EUR)"]


def test_another_field_makes_another_version_of_a_stream(tmp_path: Path) -> None:
    """What a carrier has read was of the field before; a topic is read once for streams of the same fields alone."""

    def streams(source: dict[str, Any], **fields: str) -> dict[str, Any]:
        return dict(job(tmp_path, source | {"fields": fields}, USER).streams)

    for source in (FILES, KAFKA):
        before = streams(source)["s"]
        kept = json.loads(json.dumps(StreamVersion(before).to_json()))
        read_before = [before.stream.schema_class]
        same = carried_on(streams(source), [StreamVersion.from_json(kept)], read_before)
        assert same.streams["s"] == before
        other = carried_on(streams(source, user="buyer"), [StreamVersion.from_json(kept)], read_before)
        assert [version.retired for version in other.all] == [True, False]
    assert streams(KAFKA)["s"].stream.schema_class != streams(KAFKA, user="buyer")["s"].stream.schema_class
