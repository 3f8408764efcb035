"""The heart of the project: whatever came and went while data flowed, every answer equals DuckDB's over all of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from towpath.nodes import NodeDef
from towpath.plan.cut import CUT, WHOLE
from towpath.testing import Workload, example_workload, workloads
from towpath.testing.queries import random_cuttable_shape
from towpath.testing.running import ONE, TWO, run

pytestmark = pytest.mark.spark

# Spark takes seconds for an example: no shrinking, and the same examples in every quick run.
EXAMPLES = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    database=None,
)


def check(workload: Workload, folder: Path, nodes: Mapping[str, NodeDef] = ONE, fragments: str = WHOLE) -> None:
    outcome = run(workload, folder, nodes, fragments=fragments)
    assert outcome.late == 0, "the disorder is within the allowed delay, so nothing may be late"
    for what, found in (
        ("not the batch answer", outcome.differences),
        ("shown and then taken back", outcome.taken_back),
        ("not what its sink has", outcome.sinks),
        ("answers for other event times than asked", outcome.validity),
    ):
        told = "\n".join(f"{name}: {what}: {workload.queries[name]}\n{found[name]}" for name in found)
        assert not found, told


@settings(EXAMPLES, max_examples=10, derandomize=True)
@given(workloads())
def test_ten_workloads(tmp_path_factory: pytest.TempPathFactory, workload: Workload) -> None:
    check(workload, tmp_path_factory.mktemp("workload"))


@settings(EXAMPLES, max_examples=2, derandomize=True)
@given(workloads())
def test_two_workloads_on_the_move(tmp_path_factory: pytest.TempPathFactory, workload: Workload) -> None:
    check(workload, tmp_path_factory.mktemp("workload"), TWO)


def cut_workload(seed: int) -> Workload:
    """Aggregates over joins, in two pieces each; few, since every piece is in a carrier."""
    whole = example_workload(seed, random_cuttable_shape)
    return replace(whole, queries=dict(list(whole.queries.items())[:8]))


@pytest.mark.live  # with those that take long to start; `make test` is to stay below ten minutes
def test_pieces_of_queries_on_the_move(tmp_path: Path) -> None:
    check(cut_workload(1), tmp_path, TWO, CUT)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("TOWPATH_WORKLOADS", "100")) // 10))
def test_pieces_of_many_queries_on_the_move(tmp_path: Path, seed: int) -> None:
    check(cut_workload(seed), tmp_path, TWO, CUT)


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
