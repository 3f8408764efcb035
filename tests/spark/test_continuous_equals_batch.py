"""The heart of the project: whatever came and went while data flowed, every answer equals DuckDB's over all of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.seeds import SEEDS, SEEDS_ON_THE_MOVE

from towpath.config.nodes import NodeDef
from towpath.lab.testing import Workload, example_workload, workloads
from towpath.lab.testing.drawing import plain_workload, workload_over_tables
from towpath.lab.testing.queries import (
    random_cuttable_shape,
    random_shape_of_first_rows,
    random_shape_of_sessions,
    random_shape_over_views,
)
from towpath.lab.testing.running import ONE, TWO, run
from towpath.plan import CUT, WHOLE

pytestmark = pytest.mark.spark

# Spark takes seconds for an example: no shrinking.
EXAMPLES = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    database=None,
)
ALONE = 4  # queries of a workload


def check(workload: Workload, folder: Path, nodes: Mapping[str, NodeDef] = ONE, fragments: str = WHOLE) -> None:
    outcome = run(workload, folder, nodes, fragments=fragments)
    assert not outcome.late, "what is late follows from the phases in which rows come"
    for what, found in (
        ("not the batch answer", outcome.differences),
        ("shown and then taken back", outcome.taken_back),
        ("not what its sink has", outcome.sinks),
        ("held back by silent streams", outcome.held_back),
        ("answers for other event times than asked", outcome.validity),
    ):
        message = "\n".join(f"{name}: {what}: {workload.queries[name]}\n{found[name]}" for name in found)
        assert not found, message


# Between them they have everything that is drawn (tests/test_testing.py), at a price that `make test` can pay.
@pytest.mark.parametrize("seed", SEEDS)
def test_workloads(tmp_path: Path, seed: int) -> None:
    check(example_workload(seed), tmp_path)


@pytest.mark.live  # with those that take long; `make test` is to stay below ten minutes
@pytest.mark.parametrize("seed", SEEDS_ON_THE_MOVE)
def test_workloads_on_the_move(tmp_path: Path, seed: int) -> None:
    check(example_workload(seed), tmp_path, TWO)


def cut_workload(seed: int) -> Workload:
    """Aggregates over joins, in two pieces each; few, since every piece is in a carrier."""
    whole = example_workload(seed, random_cuttable_shape)
    few = {name for name, _ in zip(whole.queries, range(8), strict=False)}
    return replace(whole, queries={name: q for name, q in whole.queries.items() if name in few or q.stays})


@pytest.mark.live
def test_pieces_of_queries_on_the_move(tmp_path: Path) -> None:
    check(cut_workload(1), tmp_path, TWO, CUT)


def view_workload(seed: int) -> Workload:
    """A few queries over views, of which each has a shape of its own; the job is started again in between."""
    whole = plain_workload(seed, random_shape_over_views)
    few = dict(list(whole.queries.items())[:8])
    return replace(whole, queries=few, restarts=(1,))


@pytest.mark.live
def test_queries_over_views(tmp_path: Path) -> None:
    check(view_workload(0), tmp_path)


def table_workload(seed: int) -> Workload:
    """A few queries over reference tables; the job is started again in between."""
    whole = workload_over_tables(seed)
    return replace(whole, queries=dict(list(whole.queries.items())[:8]), restarts=(1,))


@pytest.mark.live
@pytest.mark.parametrize("seed", [0, 1])
def test_queries_over_tables_on_the_move(tmp_path: Path, seed: int) -> None:
    check(table_workload(seed), tmp_path, TWO)


def first_rows_workload(seed: int) -> Workload:
    """A few queries for the first rows of windows; the job is started again in between."""
    whole = plain_workload(seed, random_shape_of_first_rows)
    return replace(whole, queries=dict(list(whole.queries.items())[:8]), restarts=(1,))


@pytest.mark.live
def test_first_rows_on_the_move(tmp_path: Path) -> None:
    check(first_rows_workload(0), tmp_path, TWO)


def session_workload(seed: int) -> Workload:
    """Rows that come late, versions that replace others, and starts in between; sessions stay where they are."""
    whole = example_workload(seed, random_shape_of_sessions)
    # Results are those of the newest columns, so what is shown goes when these change to and fro.
    once = [name for name, query in whole.queries.items() if len(query.replaced) < 2]
    few = {name for name, _ in zip(once, range(12), strict=False)}
    return replace(whole, queries={name: q for name, q in whole.queries.items() if name in few or q.stays})


@pytest.mark.live
def test_sessions(tmp_path: Path) -> None:
    check(session_workload(3), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("TOWPATH_WORKLOADS", "100")) // 5))
def test_many_sessions(tmp_path: Path, seed: int) -> None:
    check(session_workload(seed), tmp_path, TWO if seed % 2 else ONE)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("TOWPATH_WORKLOADS", "100")) // 5))
def test_first_rows_of_many_on_the_move(tmp_path: Path, seed: int) -> None:
    check(first_rows_workload(seed), tmp_path, TWO if seed % 2 else ONE)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("TOWPATH_WORKLOADS", "100")) // 5))
def test_many_queries_over_tables(tmp_path: Path, seed: int) -> None:
    check(table_workload(seed), tmp_path, TWO if seed % 2 else ONE)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("TOWPATH_WORKLOADS", "100")) // 5))
def test_many_queries_over_views_on_the_move(tmp_path: Path, seed: int) -> None:
    check(view_workload(seed), tmp_path, TWO if seed % 2 else ONE)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("TOWPATH_WORKLOADS", "100")) // 10))
def test_pieces_of_many_queries_on_the_move(tmp_path: Path, seed: int) -> None:
    check(cut_workload(seed), tmp_path, TWO, CUT)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("TOWPATH_WORKLOADS", "100")) // 20))
def test_queries_that_are_alone(tmp_path: Path, seed: int) -> None:
    """Who else runs makes no difference: each is compared with the same batch answer, in a job for it alone."""
    whole = example_workload(seed)
    for name in Random(seed).sample(sorted(whole.queries), min(ALONE, len(whole.queries))):
        alone = {n: query for n, query in whole.queries.items() if n == name or query.stays}
        check(replace(whole, queries=alone), tmp_path / name)


@pytest.mark.long
@settings(EXAMPLES, max_examples=int(os.environ.get("TOWPATH_WORKLOADS", "100")) // 4)
@given(workloads())
def test_many_workloads_on_the_move(tmp_path_factory: pytest.TempPathFactory, workload: Workload) -> None:
    check(workload, tmp_path_factory.mktemp("workload"), TWO)


@pytest.mark.long
@settings(EXAMPLES, max_examples=int(os.environ.get("TOWPATH_WORKLOADS", "100")))
@given(workloads())
def test_many_workloads(tmp_path_factory: pytest.TempPathFactory, workload: Workload) -> None:
    check(workload, tmp_path_factory.mktemp("workload"))
