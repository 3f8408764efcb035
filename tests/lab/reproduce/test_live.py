"""The experiments on Spark: what they make of what was measured, and that one of them runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from towpath.api import running as api
from towpath.api.checking import parse_all
from towpath.config.nodes import EmbeddedNode, NodeDef
from towpath.lab.reproduce import ExperimentReport, Progress, get, silent
from towpath.lab.reproduce.live import driving, migrating
from towpath.lab.reproduce.live.buffer_source import EVENT_BYTES, BufferSource
from towpath.lab.reproduce.live.buffer_source import job as buffer_job
from towpath.lab.reproduce.live.buffers import ROWS, WINDOW_S, fit
from towpath.lab.reproduce.live.buffers import report as buffer_report
from towpath.lab.reproduce.live.migrating import MigratingSeen
from towpath.lab.reproduce.live.nodes import Machines
from towpath.lab.reproduce.live.plans import LivePlan, LiveSource, job, units
from towpath.lab.reproduce.live.redistribution import MOVES, Redistributed, Sections
from towpath.lab.reproduce.live.redistribution import report as redistribution_report
from towpath.lab.reproduce.live.throughput import PLANNERS, Found
from towpath.lab.reproduce.live.throughput import report as throughput_report
from towpath.spark import server

from .instant import InstantNode

NODES: dict[str, NodeDef] = {
    name: EmbeddedNode.model_validate({"type": "embedded", "cores": 1}) for name in ("n1", "n2", "n3")
}


# --- hummer-fig5 ------------------------------------------------------------------------------------------------------


def test_a_line_through_what_was_seen() -> None:
    line = fit([(0, 3.0), (10, 4.0), (20, 5.0)])
    assert (line.seconds, line.per_megabyte, line.r2) == pytest.approx((3.0, 0.1, 1.0))
    assert fit([(0, 1.0), (10, 2.0), (20, 1.0)]).r2 == pytest.approx(0.0)


def seen(*answers: float, free: float = 0.0) -> list[MigratingSeen]:
    """Buffers of 1, 2, ... MB, two repetitions each."""
    return [MigratingSeen(float(n), s, s + free) for n, s in enumerate(answers, start=1) for _ in range(2)]


def verdicts(restarted: list[MigratingSeen], moved: list[MigratingSeen]) -> list[bool | None]:
    return [s.holds for s in buffer_report(restarted, moved, 2, 10, "default").statements]


def test_a_restart_grows_with_the_buffer_and_a_fence_does_not() -> None:
    assert verdicts(seen(4, 5, 6), seen(3, 3.1, 2.9, free=11)) == [True, True, True, True]


def test_each_statement_of_migrations_can_be_false() -> None:
    assert verdicts(seen(6, 5, 6), seen(3, 3, 3, free=11)) == [False, True, True, True]
    assert verdicts(seen(6, 5, 4), seen(3, 3, 3, free=11))[0] is False, "faster with a larger buffer"
    assert verdicts(seen(4, 5, 6), seen(3, 4, 5, free=11)) == [True, False, True, True]
    assert verdicts(seen(4, 5, 6), seen(7, 7, 7, free=11)) == [True, True, False, True]
    assert verdicts(seen(4, 5, 6), seen(3, 3, 3, free=20)) == [True, True, True, False]


def test_the_table_has_a_row_for_each_size() -> None:
    report = buffer_report(seen(4, 5, 6), seen(3, 3, 3, free=11), 2, 10, "default")
    assert [row[:2] for row in report.tables[1].rows] == [(1.0, 4.0), (2.0, 5.0), (3.0, 6.0)]


def test_a_buffer_is_as_large_as_asked_for(tmp_path: Path) -> None:
    buffer_job(tmp_path, NODES, {}, 100)
    BufferSource(tmp_path).fill(1000, 5_000_000)
    first = pq.read_table(tmp_path / "data" / "left" / "000000.parquet")
    assert first.num_rows == 1000
    assert set(map(len, first["content"].to_pylist())) == {EVENT_BYTES}
    keys = [pq.read_table(file)["k"].to_pylist() for file in sorted((tmp_path / "data" / "right").iterdir())]
    assert not {k for some in keys for k in some} & set(first["k"].to_pylist()), "the buffer matches nothing"


# --- the plans --------------------------------------------------------------------------------------------------------


def nodes_of_groups(placed: dict[str, str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for query, node in placed.items():
        found.setdefault(query.partition("_")[0], set()).add(node)
    return found


@pytest.mark.parametrize("count", [1, 2, 3])
def test_grouping_keeps_a_join_on_one_node_and_round_robin_spreads_it(count: int) -> None:
    names = list(NODES)[:count]
    plan = LivePlan(groups=6, queries=4)
    assert all(len(nodes) == 1 for nodes in nodes_of_groups(units(plan, names, "grouping")).values())
    dealt = units(plan, names, "round_robin")
    assert all(len(nodes) == count for nodes in nodes_of_groups(dealt).values())
    assert set(units(plan, names, "grouping").values()) == set(dealt.values()) == set(names)


def test_round_robin_puts_all_joins_on_one_node_when_filters_come_between() -> None:
    placed = units(LivePlan(groups=4, queries=1, cheap=4), ["n1", "n2"], "round_robin")
    assert {node for query, node in placed.items() if query.startswith("join")} == {"n1"}
    assert {node for query, node in placed.items() if query.startswith("filter")} == {"n2"}


@pytest.mark.parametrize("plan", [LivePlan(), LivePlan(groups=2, queries=1, cheap=2)], ids=["joins", "with filters"])
def test_the_queries_of_a_plan_are_valid(plan: LivePlan, tmp_path: Path) -> None:
    made = job(plan, tmp_path, NODES, units(plan, ["n1", "n2"], "grouping"), 100)
    assert set(parse_all(made)) == set(plan.sql())
    assert len({definition.stream.schema_class for definition in made.streams.values()}) == len(made.streams)


def test_chunks_follow_each_other(tmp_path: Path) -> None:
    plan = LivePlan(groups=1, queries=1, rate=10, chunk_s=2)
    job(plan, tmp_path, NODES, units(plan, ["n1"], "grouping"), 100)
    source = LiveSource(plan, tmp_path, 0)
    source.write()
    first = source.newest_us
    source.write()
    tables = [pq.read_table(file) for file in sorted((tmp_path / "data").rglob("*.parquet"))]
    assert sum(table.num_rows for table in tables) == 2 * plan.chunk_rows
    assert source.newest_us - first == 2_000_000


# --- D-CAPE -----------------------------------------------------------------------------------------------------------


def test_statements_about_throughput() -> None:
    found: Found = {(1, planner): [100.0, 102.0] for planner in PLANNERS}
    found |= {(2, "round_robin"): [80.0, 82.0], (2, "grouping"): [180.0, 184.0]}
    report = throughput_report(found, LivePlan(), (1, 2), 0.5, 2)
    assert [s.holds for s in report.statements] == [True, False, True, True]
    assert report.statements[1].ours == pytest.approx(81 / 101)
    found[2, "grouping"] = [70.0, 72.0]
    report = throughput_report(found, LivePlan(), (1, 2), 0.5, 2)
    assert [s.holds for s in report.statements] == [False, False, False, False]


def test_statements_about_moves() -> None:
    def report(moving: float, after: float) -> list[bool | None]:
        sections = Sections((moving, moving), (100.0, 100.0), 4)
        found = {"round_robin": Redistributed((100.0, 100.0), (after, after), 3)}
        made = redistribution_report(sections, found, "default", 2)
        assert made.tables[0].rows[1] == ("policy after round robin", 100.0, after, 3)
        return [s.holds for s in made.statements]

    assert report(98.0, 180.0) == [True, True]
    assert report(80.0, 120.0) == [False, False]


# --- whole experiments ------------------------------------------------------------------------------------------------


class NoMachines(Machines):
    """Nodes that need no server and no cap."""

    @property
    def names(self) -> Sequence[str]:
        return list(NODES)[:2]

    def definitions(self, names: Sequence[str]) -> dict[str, NodeDef]:
        return {name: NODES[name] for name in names}

    @contextmanager
    def capped(self, names: Sequence[str], share: float) -> Iterator[None]:
        yield


@pytest.fixture
def without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def machines(count: int, progress: Progress) -> Iterator[Machines]:
        yield NoMachines({}, tmp_path)

    for module in ("buffers", "redistribution", "throughput"):
        monkeypatch.setattr(import_module(f"towpath.lab.reproduce.live.{module}"), "machines", machines)
    monkeypatch.setattr(driving, "LOOK_S", 0.0)
    monkeypatch.setattr(api, "_open", lambda name, node, *, job, **_: InstantNode(job))


@pytest.mark.usefixtures("without_spark")
def test_throughput_is_measured_for_all_distributions() -> None:
    report = get("dcape-fig5-live")("tiny", [0, 1], silent)
    assert [row[0] for row in report.tables[0].rows] == ["round robin", "grouping"]
    assert all(float(tuples) > 0 for row in report.tables[0].rows for tuples in row[1:])


@pytest.mark.usefixtures("without_spark")
def test_a_join_moves_there_and_back_in_every_repetition() -> None:
    report = get("dcape-fig6-live")("tiny", [0, 1], silent)
    (_, still, moving, moves), _ = report.tables[0].rows
    assert moves == 2 * MOVES
    assert float(still) > 0 and float(moving) > 0


@pytest.mark.usefixtures("without_spark")
def test_buffers_are_migrated_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WINDOW_S, "tiny", 1)  # type: ignore[arg-type]  # a Mapping to all others
    monkeypatch.setattr(migrating, "APART_S", 0.1)
    monkeypatch.setattr(migrating, "TRICKLE_S", 0.1)
    check_tiny_buffers(get("hummer-fig5")("tiny", [0, 1], silent))


@pytest.mark.spark
@pytest.mark.live
@pytest.mark.long
def test_buffers_are_migrated_between_spark_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    check_tiny_buffers(get("hummer-fig5")("tiny", [0, 1], silent))
    assert server.servers() == {}


def check_tiny_buffers(report: ExperimentReport) -> None:
    table = report.tables[1].rows
    assert len(table) == len(ROWS["tiny"])
    for rows, (restarted_mb, restarted_s, moved_mb, answers_s, free_s) in zip(ROWS["tiny"], table, strict=True):
        assert min(float(restarted_mb), float(moved_mb)) >= rows * EVENT_BYTES / 1e6
        assert float(restarted_s) > 0
        assert 0 < float(answers_s) < float(free_s), "a node answers before the other one is free"
