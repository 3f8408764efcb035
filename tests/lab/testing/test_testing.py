from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from tests.seeds import SEEDS as RUN

from towpath.config.settings import BEGINNING
from towpath.lab.testing import Recording, Workload, example_workload, queries, streams, workloads
from towpath.lab.testing.edits import text_in_file
from towpath.lab.testing.late import first_late_phase, late_rows, without_late
from towpath.lab.testing.queries import random_shape
from towpath.lang import Select, parse
from towpath.plan import CarrierKinds
from towpath.plan.cut import plan
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import universal_for
from towpath.schema import Catalog, Type
from towpath.verify import differences, expected

SEEDS = (*range(12), 27)  # the last one has a join of five
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
        rows = without_late(recording, [stream.schema_class]).complete(stream.name)
        times = rows[stream.time].cast("int64").to_numpy()
        assert (0 if recording.idle_after_ms else 20) <= len(times) <= 300
        assert rows[stream.time].null_count == 0
        newest = np.maximum.accumulate(times)
        assert (newest - times <= stream.delay_us).all()


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


def test_rows_are_late_for_all_or_for_aggregates_only_or_not_at_all() -> None:
    recordings = [example_workload(seed).recording for seed in range(40)]
    late = [sum(late_rows(recording).values()) for recording in recordings]
    assert any(late) and not all(late)
    classes = [{stream.schema_class for stream in recording.catalog.values()} for recording in recordings]
    left_out = [
        sum(r.complete(name).num_rows - without_late(r, every).complete(name).num_rows for name in r.catalog)
        for r, every in zip(recordings, classes, strict=True)
    ]
    assert any(fewer < all_ for fewer, all_ in zip(left_out, late, strict=True)), "a join waits for its slowest input"
    assert any(left_out)


def test_streams_take_turns_in_silence_and_are_never_behind_by_more_than_their_delay() -> None:
    recordings = [example_workload(seed).recording for seed in range(40)]
    silent = [recording for recording in recordings if recording.idle_after_ms]
    assert any(len(recording.catalog) > 1 for recording in silent)
    for recording in silent:
        newest = -(2**62)
        for phase in range(len(recording.chunks)):
            said = {name: times for name in recording.catalog if (times := recording.times(phase, name))}
            assert len(said) <= 1
            for name, times in said.items():
                assert min(times) >= newest - recording.catalog[name].delay_us
                newest = max(newest, *times)


def test_queries_ask_for_every_kind_of_beginning_and_are_replaced() -> None:
    drawn = [example_workload(seed) for seed in range(40)]
    asked = {
        (query.submit > 0, query.begins.now, query.begins.us is None)
        for workload in drawn
        for query in workload.queries.values()
    }
    assert asked >= {(True, True, True), (True, False, True), (True, False, False), (False, False, False)}
    replaced = [query for workload in drawn for query in workload.queries.values() if query.replaced]
    assert any(query.sink for query in replaced)
    assert all(query.submit < change.phase for query in replaced for change in query.replaced)


def test_no_query_asks_for_a_past_with_late_rows() -> None:
    for seed in range(40):
        workload = example_workload(seed)
        calm = first_late_phase(workload.recording)
        past = [q for q in workload.queries.values() if q.submit and not q.begins.now]
        assert all(query.submit < calm for query in past)


def test_edits_change_queries_of_the_file_and_add_streams() -> None:
    drawn = [example_workload(seed) for seed in range(60)]
    edited = [workload for workload in drawn if workload.restarts]
    assert any(workload.added for workload in edited)
    changed = Counter[str]()
    for workload in edited:
        (phase,) = workload.restarts
        for query in workload.queries.values():
            before, after = text_in_file(workload, query, phase - 1), text_in_file(workload, query, phase)
            changed["added"] += before is None and after is not None
            changed["removed"] += before is not None and after is None
            changed["replaced"] += None not in (before, after) and before != after
        for name, query in workload.queries.items():
            streams = {i.stream for s in parse(query.sql, workload.recording.catalog, name).selects for i in s.inputs}
            assert all(query.submit >= workload.added.get(stream, 0) for stream in streams)
    assert all(changed[kind] for kind in ("added", "removed", "replaced"))


def test_the_workloads_that_are_run_have_everything_that_is_drawn() -> None:
    run = [example_workload(seed) for seed in RUN]
    submissions = [query for workload in run for query in workload.queries.values()]
    assert any(late_rows(workload.recording) for workload in run)
    assert any(workload.recording.idle_after_ms for workload in run)
    assert any(workload.restarts and not workload.added for workload in run)
    assert any(workload.added for workload in run)
    assert any(query.replaced and query.sink for query in submissions)
    assert any(query.submit and query.begins == BEGINNING for query in submissions)
    assert any(query.submit and query.begins.us is not None for query in submissions)
    assert any(query.submit and query.begins.now for query in submissions)
    assert any(query.withdraw is not None for query in submissions)


def test_the_workloads_that_are_run_have_every_kind_of_universal_carrier() -> None:
    """In jobs that say `universal` all the time: whatever can be so is."""
    run = [w for seed in RUN if set((w := example_workload(seed)).carriers) == {CarrierKinds.UNIVERSAL}]
    made = [p for w in run for query in w.queries.values() for p in _pipelines(query.sql, w.recording.catalog)]
    assert {template.family.kind for p in made if (template := universal_for(p)) is not None} == {
        "universal filter",
        "universal aggregate",
        "universal 2-way join",
        "universal 2-way join + aggregate",
    }


def _pipelines(sql: str, catalog: Catalog) -> tuple[Pipeline, ...]:
    return plan(parse(sql, catalog), catalog).pipelines


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
