from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from towpath.lang import Select, parse
from towpath.schema import Type
from towpath.testing import Recording, Workload, example_workload, queries, streams, workloads
from towpath.testing.queries import random_shape
from towpath.verify import differences, expected

SEEDS = range(12)
GENERATED = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def answers(workload: Workload) -> Counter[str]:
    """Runs every query in the oracle; how many of each kind had an answer."""
    catalog = workload.recording.catalog
    database = workload.database()
    kinds: Counter[str] = Counter()
    for name, submission in workload.queries.items():
        query = parse(submission.sql, catalog, name)
        if expected(database, query, catalog).num_rows:
            kinds.update({"union"} if len(query.selects) > 1 else {kind(query.selects[0])})
    return kinds


def kind(select: Select) -> str:
    if not select.window:
        return {1: "filter", 2: "join of 2", 3: "join of 3", 4: "join of 4", 5: "join of 5"}[len(select.inputs)]
    direct = all(i.range_us == select.window.range_us for i in select.inputs)
    return "aggregate" if len(select.inputs) == 1 else "aggregate of join" if direct else "aggregate of derived"


def check_recording(recording: Recording) -> None:
    assert 1 <= len(recording.catalog) <= 4
    assert 2 <= len(recording.chunks) <= 5
    for stream in recording.catalog.values():
        rows = recording.complete(stream.name)
        times = rows[stream.time].cast("int64").to_numpy()
        assert 20 <= len(times) <= 300
        assert rows[stream.time].null_count == 0
        newest = np.maximum.accumulate(times)
        assert (newest - times).max() <= stream.delay_us


@pytest.mark.parametrize("seed", SEEDS)
def test_recordings_by_seed(seed: int) -> None:
    check_recording(example_workload(seed).recording)


@GENERATED
@given(streams())
def test_recordings(recording: Recording) -> None:
    check_recording(recording)


@GENERATED
@given(workloads())
def test_every_text_is_a_query_with_an_answer(workload: Workload) -> None:
    answers(workload)


@GENERATED
@given(st.data())
def test_queries_over_a_given_catalog(data: st.DataObject) -> None:
    catalog = example_workload(0).recording.catalog
    parse(data.draw(queries(catalog)), catalog)


def test_a_seed_gives_one_workload() -> None:
    first, second = example_workload(5), example_workload(5)
    assert first.queries == second.queries
    for before, after in zip(first.recording.chunks, second.recording.chunks, strict=True):
        assert repr({s: t.to_pylist() for s, t in before.items()}) == repr({s: t.to_pylist() for s, t in after.items()})
    assert first.queries != example_workload(6).queries


def test_every_kind_of_query_comes_and_finds_something() -> None:
    kinds = sum((answers(example_workload(seed)) for seed in SEEDS), Counter[str]())
    assert set(kinds) == {
        "filter",
        "join of 2",
        "join of 3",
        "join of 4",
        "join of 5",
        "aggregate",
        "aggregate of join",
        "aggregate of derived",
        "union",
    }


def test_streams_share_schemas_and_have_disorder_and_nulls_of_every_type() -> None:
    recordings = [example_workload(seed).recording for seed in SEEDS]
    classes = [[s.schema_class for s in r.catalog.values()] for r in recordings]
    assert any(len(set(c)) < len(c) for c in classes)
    assert any(len(set(c)) > 1 for c in classes)
    with_nulls = set()
    disordered = 0
    for recording in recordings:
        for stream in recording.catalog.values():
            rows = recording.complete(stream.name)
            disordered += bool((np.diff(rows[stream.time].cast("int64").to_numpy()) < 0).any())
            with_nulls |= {c.type for c in stream.columns if rows[c.name].null_count}
    assert disordered
    assert with_nulls == set(Type)


def test_queries_come_and_go_and_repeat() -> None:
    workloads_ = [example_workload(seed) for seed in SEEDS]
    submissions = [s for w in workloads_ for s in w.queries.values()]
    assert any(s.submit > 0 for s in submissions)
    assert any(s.withdraw is not None for s in submissions)
    assert all(s.withdraw is None or s.withdraw > s.submit for s in submissions)
    assert any(len({s.sql for s in w.queries.values()}) < len(w.queries) for w in workloads_)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_twist_does_not_change_the_answer(seed: int) -> None:
    workload = example_workload(seed)
    catalog, database = workload.recording.catalog, workload.database()
    shape = random_shape(Random(seed), catalog)
    plain = parse(shape.text(constants=1), catalog)
    for twist in (1, 2, 3):
        twisted = parse(shape.text(constants=1, twist=twist), catalog)
        assert differences(expected(database, plain, catalog), expected(database, twisted, catalog)) is None


def test_failures_shrink() -> None:
    def joins(workload: Workload) -> bool:
        return any("b.k" in s.sql for s in workload.queries.values())

    shrinking = settings(max_examples=100, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    smallest = find(workloads(), joins, settings=shrinking)
    assert len(smallest.queries) <= 2
    assert len(smallest.recording.catalog) == 1
    assert smallest.recording.complete("s1").num_rows == 20
