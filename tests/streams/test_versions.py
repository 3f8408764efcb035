"""The streams of a job file that was edited: which carriers can go on reading them, and which cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.schema import SchemaClass
from towpath.streams.definition import StreamDef, StreamText, define, is_native
from towpath.streams.versions import StreamVersion, Versions, carried_on

HERE = str(Path(__file__).parent)
SCHEMA = {"k": "bigint", "at": "timestamp"}


def stream(name: str, **edits: Any) -> StreamDef:
    path = Path(HERE) / edits.pop("path", name)
    source = {"type": "files", "path": HERE, "format": "parquet", **edits.pop("source", {})}
    text = StreamText.model_validate(
        {"source": source, "schema": SCHEMA, "time": "at"} | edits, context={"folder": Path(HERE)}
    )
    if source["type"] != "files":
        return define(name, text)
    # Folders that differ need not exist.
    return define(name, text.model_copy(update={"source": text.source.model_copy(update={"path": str(path)})}))


def job(*streams: StreamDef) -> dict[str, StreamDef]:
    return {s.stream.name: s for s in streams}


def again(before: Versions, now: dict[str, StreamDef], read: set[SchemaClass] | None = None) -> Versions:
    """As after a run with carriers of every class, through the journal."""
    stored = [StreamVersion.from_json(json.loads(json.dumps(v.to_json()))) for v in before.all]
    classes = {v.definition.stream.schema_class for v in before.all} if read is None else read
    return carried_on(now, stored, classes)


def first(*streams: StreamDef) -> Versions:
    return carried_on(job(*streams), [], set())


def class_of(versions: Versions, name: str) -> SchemaClass:
    return versions.streams[name].stream.schema_class


def test_a_job_that_is_not_edited_stays_as_it_is() -> None:
    before = first(stream("a"), stream("b"), stream("c", schema={"x": "double", "at": "timestamp"}))
    assert again(before, before.streams) == before
    assert class_of(before, "a") == class_of(before, "b") != class_of(before, "c")
    assert [before.streams[name].aligned for name in "abc"] == [True, True, False]


def test_a_stream_beside_one_that_spark_reads_is_a_group_of_its_own() -> None:
    before = first(stream("a"))
    after = again(before, job(stream("a"), stream("b")))
    assert class_of(after, "a") == class_of(before, "a")
    assert class_of(after, "b") != class_of(after, "a")
    assert not after.streams["a"].aligned and not after.streams["b"].aligned
    more = again(after, job(stream("a"), stream("b"), stream("c"), stream("d")))
    assert [class_of(more, name) for name in "ab"] == [class_of(after, name) for name in "ab"]
    assert class_of(more, "c") == class_of(more, "d") and more.streams["c"].aligned


def test_a_feed_is_joined_and_left_and_stays_a_feed() -> None:
    before = first(stream("a"), stream("b"))
    joined = again(before, job(stream("a"), stream("b"), stream("c")))
    assert len({class_of(joined, name) for name in "abc"}) == 1
    alone = again(joined, job(stream("b")))
    assert class_of(alone, "b") == class_of(before, "b")
    assert alone.streams["b"].aligned
    assert [s.stream.name for s in alone.readable] == ["b"], "what was removed is not read any more"


def test_parts_of_a_folder_are_joined_by_others() -> None:
    one, two = (stream(f"p{k}", path="p", source={"where": {"k": k}}) for k in (1, 2))
    after = again(first(one), job(one, two))
    assert class_of(after, "p1") == class_of(after, "p2")
    assert is_native(list(after.streams.values())) and not after.streams["p2"].aligned


@pytest.mark.parametrize(
    "edit",
    [
        {"path": "elsewhere"},
        {"source": {"format": "json"}},
        {"source": {"where": {"k": 7}}},
        {"schema": {**SCHEMA, "more": "string"}},
        {"schema": {"k": "string", "at": "timestamp"}},
        {"schema": {"at": "timestamp"}},
        {"schema": {**SCHEMA, "then": "timestamp"}, "time": "then"},
    ],
    ids=str,
)
@pytest.mark.parametrize("company", [(), ("b",)])
def test_a_stream_with_other_rows_is_another(edit: dict[str, Any], company: tuple[str, ...]) -> None:
    others = [stream(name) for name in company]
    before = first(stream("a"), *others)
    after = again(before, job(stream("a", **edit), *others))
    assert class_of(after, "a") != class_of(before, "a")
    back = again(after, job(stream("a"), *others))
    assert class_of(back, "a") not in (class_of(before, "a"), class_of(after, "a"))
    for name in company:
        assert class_of(after, name) == class_of(before, name) == class_of(back, name)


@pytest.mark.parametrize(
    "edit",
    [{"delay": "7 seconds"}, {"idle_after": "3 minutes"}, {"schema": {"at": "timestamp", "k": "bigint"}}],
    ids=str,
)
def test_a_stream_with_the_same_rows_is_the_same(edit: dict[str, Any]) -> None:
    before = first(stream("a"))
    after = again(before, job(stream("a", **edit)))
    assert class_of(after, "a") == class_of(before, "a")
    assert after.streams["a"].stream.delay_us == stream("a", **edit).stream.delay_us
    assert after.streams["a"].idle_after_ms == stream("a", **edit).idle_after_ms


def test_the_order_of_columns_counts_without_a_header() -> None:
    plain = {"format": "csv", "header": False}
    before = first(stream("a", source=plain))
    after = again(before, job(stream("a", source=plain, schema={"at": "timestamp", "k": "bigint"})))
    assert class_of(after, "a") != class_of(before, "a")


def test_what_nobody_has_read_may_change() -> None:
    before = first(stream("a"))
    after = again(before, job(stream("a", path="elsewhere"), stream("b")), read=set())
    assert class_of(after, "a") == class_of(after, "b") == class_of(before, "a")
    assert after.streams["a"].aligned


def test_carriers_that_owe_results_go_on_with_a_stream_that_is_gone() -> None:
    before = first(stream("a"), stream("z", schema={"x": "double", "at": "timestamp"}))
    after = again(before, job(stream("a")))
    assert [s.stream.name for s in after.readable] == ["z", "a"]
    assert after.streams.keys() == {"a"}
    assert [s.stream.name for s in again(after, job(stream("a")), read={class_of(after, "a")}).readable] == ["a"]


@pytest.mark.parametrize("edit", [{"rate": 7}, {"seed": 2}, {"rows": 5}, {"start": "2020-01-01"}, {"disorder": "1 s"}])
def test_a_generator_with_other_rows_is_another(edit: dict[str, Any]) -> None:
    def sensor(n: int, **edits: Any) -> StreamDef:
        source = {"type": "traffic", "sensor": n, "sensors": 2, "rate": 10, **edits}
        return define(f"g{n}", StreamText.model_validate({"source": source}))

    before = first(sensor(1), sensor(2))
    after = again(before, job(sensor(1), sensor(2, **edit)))
    assert class_of(after, "g1") == class_of(before, "g1")
    assert class_of(after, "g2") != class_of(before, "g2")
    assert class_of(again(before, before.streams), "g2") == class_of(before, "g2")


CHOICES = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(st.sampled_from("xyz"), st.sampled_from(["parquet", "csv"])), min_size=1
)


@given(st.lists(CHOICES, min_size=2, max_size=6))
def test_a_class_never_gets_a_stream_with_another_past_or_another_reader(
    edits: list[dict[str, tuple[str, str]]],
) -> None:
    """The law: of a class, a name stands for the same rows for ever, and its reader stays what it was."""
    rows: dict[tuple[SchemaClass, str], tuple[str, str]] = {}
    readers: dict[SchemaClass, bool] = {}
    versions = Versions([])
    for edit in edits:
        now = job(*(stream(n, path=path, source={"format": form}) for n, (path, form) in edit.items()))
        versions = again(versions, now)
        assert versions.streams.keys() == edit.keys()
        classes: dict[SchemaClass, list[StreamDef]] = {}
        for name, definition in versions.streams.items():
            key = definition.stream.schema_class
            assert rows.setdefault((key, name), edit[name]) == edit[name]
            classes.setdefault(key, []).append(definition)
        for key, streams in classes.items():
            assert len({s.aligned for s in streams}) == 1
            feed = streams[0].aligned or not is_native(streams)
            assert readers.setdefault(key, feed) == feed
