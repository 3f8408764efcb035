from __future__ import annotations

import numpy as np
import pytest

from towpath.placement.index import Floats, Ints, latencies
from towpath.placement.vivaldi import Coordinates, PercentileFilter, Sample, embed
from towpath.problems.generate.transit_stub import TransitStub, transit_stub

SMALL = TransitStub(transit_domains=4, transit_nodes=3, stub_domains=24, stub_nodes=6)


def on_a_plane(count: int, seed: int = 0) -> Floats:
    points = np.random.default_rng(seed).random((count, 2)) * 0.1
    return np.asarray(np.linalg.norm(points[:, None] - points[None], axis=2))


def relative_error(found: Coordinates, sample: Sample, pairs: int = 20_000, seed: int = 0) -> float:
    """The median of |predicted - measured| / measured over random pairs whose latency is known."""
    rng, count = np.random.default_rng([seed, 9]), len(found.points)
    nodes, others = rng.integers(0, count, pairs), rng.integers(0, count, pairs)
    latency = sample(nodes, others)
    known = np.isfinite(latency) & (latency > 0) & (nodes != others)
    nodes, others, latency = nodes[known], others[known], latency[known]
    if not len(latency):
        return float("nan")
    return float(np.median(np.abs(found.distance(nodes, others) - latency) / latency))


def test_latencies_that_are_distances_are_learned() -> None:
    matrix = on_a_plane(60)
    found = embed(lambda a, b: matrix[a, b], 60)
    assert relative_error(found, lambda a, b: matrix[a, b]) < 0.02
    assert found.errors.max() < 0.2, "and the nodes know how good they are"


@pytest.mark.parametrize(("routing", "most"), [("latency", 0.11), ("policy", 0.15)])
def test_the_papers_topology_is_predicted_about_as_well_as_on_planetlab(routing: str, most: float) -> None:
    """Ways that are not the shortest have no place in any space."""
    for seed in range(3):
        cluster = transit_stub(SMALL.model_copy(update={"routing": routing}), seed)

        def sample(a: Ints, b: Ints, cluster: object = cluster) -> Floats:
            return latencies(cluster, a, b)  # type: ignore[arg-type]

        assert relative_error(embed(sample, len(cluster.nodes), seed=seed), sample) < most


def test_missing_and_impossible_measurements_are_passed_over() -> None:
    matrix = on_a_plane(60)
    holes = np.random.default_rng(1).random(matrix.shape) < 0.4
    broken = np.where(holes, np.nan, matrix)
    broken[3, :] = broken[:, 3] = np.nan  # nobody has ever measured this node
    broken[5, 6] = -1.0
    found = embed(lambda a, b: broken[a, b], 60)
    assert np.isfinite(found.points).all()
    assert relative_error(found, lambda a, b: broken[a, b]) < 0.05


def test_detours_do_not_spoil_the_rest() -> None:
    """One pair in ten has thrice the latency, so that the triangle inequality does not hold."""
    matrix = on_a_plane(60)
    slow = np.triu(np.random.default_rng(2).random(matrix.shape) < 0.1)
    matrix = np.where(slow | slow.T, 3 * matrix, matrix)
    assert relative_error(embed(lambda a, b: matrix[a, b], 60), lambda a, b: matrix[a, b]) < 0.25


def test_a_single_node_has_a_point() -> None:
    assert embed(lambda a, b: np.zeros(len(a)), 1).points.shape == (1, 3)


def test_the_filter_keeps_the_baseline_of_a_link() -> None:
    settle = PercentileFilter()
    smoothed = [settle(0.1 if n % 3 else 2.0) for n in range(30)]
    assert smoothed[-1] == 0.1
    moved = [settle(0.3) for _ in range(10)]
    assert moved[-1] == 0.3, "a new route becomes the baseline"


def test_nodes_that_agree_stay_where_they_are() -> None:
    found = Coordinates(2)
    found.points[:] = [[0, 0, 0], [0.1, 0, 0]]
    found.measure(np.array([0]), np.array([1]), np.array([0.1]))
    assert np.allclose(found.points, [[0, 0, 0], [0.1, 0, 0]])
