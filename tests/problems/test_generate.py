from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import combinations, groupby, pairwise
from pathlib import Path

import numpy as np
import pytest

from towpath.placement.index import index, latencies
from towpath.placement.problem import Problem
from towpath.placement.validate import validate
from towpath.problems.generate import matrix as matrices
from towpath.problems.generate.dcape import PLANS, Dcape, dcape
from towpath.problems.generate.draw import spread, zipf
from towpath.problems.generate.drifting import Drifting
from towpath.problems.generate.drifting import write as write_series
from towpath.problems.generate.geography import Geography, geography
from towpath.problems.generate.hummer import hummer
from towpath.problems.generate.matrix import Matrix, matrix
from towpath.problems.generate.plane import Plane, plane
from towpath.problems.generate.sbon import sbon
from towpath.problems.generate.sqpr import sqpr
from towpath.problems.generate.transit_stub import TransitStub, transit_stub
from towpath.problems.generate.uniform import Uniform, uniform
from towpath.problems.generate.zhou import Zhou, zhou

SEEDS = [0, 1, 2]
SMALL_TOPOLOGY = TransitStub(transit_domains=4, transit_nodes=3, stub_domains=12, stub_nodes=4)
DIGEST = """
import hashlib
from towpath.problems.generate.{name} import {name}
problem = {name}(seed=5)
print(hashlib.sha256(repr((problem.streams, problem.fragments, problem.queries)).encode()).hexdigest())
"""
GENERATORS: dict[str, Callable[..., Problem]] = {
    "zhou": zhou,
    "dcape": dcape,
    "sbon": sbon,
    "sqpr": sqpr,
    "hummer": hummer,
}


@pytest.mark.parametrize("name", GENERATORS)
def test_problems_are_valid(name: str) -> None:
    assert validate(GENERATORS[name]()) == []


@pytest.mark.parametrize("name", GENERATORS)
def test_the_same_in_every_process(name: str) -> None:
    """Whatever order sets of texts have there."""
    problem = GENERATORS[name](seed=5)
    own = hashlib.sha256(repr((problem.streams, problem.fragments, problem.queries)).encode()).hexdigest()
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    command = [sys.executable, "-c", DIGEST.format(name=name)]
    other = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == own


# --- zhou ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_zhou_is_as_the_paper_says(seed: int) -> None:
    problem = zhou(seed=seed)
    operators = list(problem.operators())
    assert [len(problem.cluster.nodes), len(problem.streams), len(problem.queries)] == [33, 96, 500]
    assert len(operators) == pytest.approx(5750, rel=0.02)
    assert set(Counter(s.node for s in problem.streams).values()) == {3}
    assert {(s.rate, s.tuple_bytes) for s in problem.streams} == {(250.0, 100.0)}
    assert {(o.kind, o.cost) for o in operators} == {("filter", 20e-6), ("join", 80e-6)}
    assert all(0.5 <= o.selectivity <= 0.8 for o in operators)
    windows = [o.state_bytes / 200 for o in operators if o.kind == "join"]
    assert 5_000 <= min(windows) < 6_000 and 19_000 < max(windows) <= 20_000
    assert {q.sink for q in problem.queries} == {"sink"}


@pytest.mark.parametrize("theta", [0.0, 0.95])
def test_zhou_fits_its_nodes(theta: float) -> None:
    """The docstring's reason for its default: the work is two thirds of what there is, however it is distributed."""
    assert index(zhou(Zhou(theta=theta))).load.sum() / 32 == pytest.approx(0.66, abs=0.03)


def test_zhou_streams_are_chosen_by_zipf() -> None:
    def uses(theta: float) -> list[int]:
        problem = zhou(Zhou(theta=theta, queries=4000, streams_per_query=(1, 1), operators_per_fragment=1))
        return sorted(Counter(f.native for f in problem.fragments).values(), reverse=True)

    expected = np.arange(1, 97) ** -0.95
    expected *= 4000 / expected.sum()
    np.testing.assert_allclose(uses(0.95)[:10], expected[:10], rtol=0.15)
    assert max(uses(0.0)) < 75  # of 42 on average


def test_zhou_a_fragment_for_each_stream_and_joins_at_the_higher_rate() -> None:
    problem = zhou(Zhou(queries=200, streams_per_query=(2, 6)))
    rates = dict(zip(index(problem).points, index(problem).rate_out, strict=True))
    for query in problem.queries:
        fragments = [problem.fragment[name] for name in query.fragments]
        assert len({f.native for f in fragments}) == len(fragments)
        joins = [(f, o) for f in fragments for o in f.operators if o.kind == "join"]
        assert len(joins) == len(fragments) - 1
        for fragment, join in joins:
            own = [name for name in join.inputs if problem.home[name] == fragment.name]
            assert len(own) == 1 and rates[own[0]] == max(rates[name] for name in join.inputs)


def test_zhou_operators_do_not_depend_on_the_fragmenter() -> None:
    whole, apart = (zhou(Zhou(queries=50, fragmenter=f)) for f in ("one_per_stream", "one_per_operator"))
    assert set(whole.operators()) == set(apart.operators())
    assert all(len(f.operators) == 1 for f in apart.fragments)
    assert {o.name: whole.fragment[whole.home[o.name]].native for o in whole.operators()} == {
        f.operators[0].name: f.native for f in apart.fragments
    }


@pytest.mark.parametrize("wanted", [2.0, 4.6, 9.0])
def test_zhou_operators_per_fragment(wanted: float) -> None:
    problem = zhou(Zhou(operators_per_fragment=wanted))
    assert len(list(problem.operators())) / len(problem.fragments) == pytest.approx(wanted, abs=0.01)


def test_zhou_shared_filters() -> None:
    assert all(o.signature is None for o in zhou().operators())
    problem = zhou(Zhou(shared=1.0))
    filters = [o for o in problem.operators() if o.kind == "filter"]
    alike = {o.signature: o.selectivity for o in filters}
    assert all(alike[o.signature] == o.selectivity for o in filters)
    half = [o.signature for o in zhou(Zhou(shared=0.5)).operators() if o.kind == "filter"]
    assert 0.1 < sum(s is not None for s in half) / len(half) < 0.5  # only a prefix of each chain can be shared


# --- dcape -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "operators", "depth", "breadth", "joins"),
    [("1", 5, 5, 1, 0), ("1-joins", 5, 5, 6, 5), ("2", 20, 9, 6, 5), ("3", 40, 14, 8, 7), ("4", 80, 14, 16, 14)],
)
def test_dcape_plans(plan: str, operators: int, depth: int, breadth: int, joins: int) -> None:
    problem = dcape(PLANS[plan])
    assert (len(problem.fragments), len(problem.streams)) == (operators, breadth)
    assert sum(o.kind == "join" for o in problem.operators()) == joins
    assert max(_depth(problem, o.name) for o in problem.operators()) == depth
    assert {(o.kind, o.selectivity) for o in problem.operators()} <= {("join", 2.0), ("filter", 1.0)}
    assert {s.rate for s in problem.streams} == {40.0}


def _depth(problem: Problem, name: str) -> int:
    return 0 if name in problem.stream else 1 + max(_depth(problem, i) for i in problem.operator[name].inputs)


def test_dcape_nothing_runs_where_streams_come_from_and_results_go() -> None:
    problem = dcape(PLANS["4"])
    idle = {node.name for node in problem.cluster.nodes if node.cpu == 0}
    assert idle == {"feed1", "feed2", "listener1", "listener2"}
    assert {s.node for s in problem.streams} | {q.sink for q in problem.queries} == idle


def test_dcape_costs_are_equations_3_2_and_3_3() -> None:
    p = Dcape(operators=2, streams=2, depth=2, window=10.0)
    single, join = dcape(p).operators()
    # n1 = n2 = 40, s1 = s2 = 400: omega + (psi (s1 + s2) + rho (n1 s2 + n2 s1)) / n + sigma omega
    assert join.cost == pytest.approx(20e-6 + (0.01e-6 * 800 + 0.1e-6 * 2 * 40 * 400) / 80 + 2 * 20e-6)
    assert single.cost == pytest.approx(20e-6 + 100e-6 + 20e-6)
    assert join.state_bytes == 800 * 100


# --- sbon and sqpr ---------------------------------------------------------------------------------------------------


def test_sbon_is_as_the_paper_says() -> None:
    problem = sbon()
    assert (len(problem.cluster.nodes), len(problem.queries), len(problem.streams)) == (1550, 1000, 4000)
    assert {s.rate * s.tuple_bytes for s in problem.streams} == {2000.0}
    for fragment in problem.fragments:
        (aggregator,) = fragment.operators
        assert len({problem.stream[name].node for name in aggregator.inputs}) == 4
        assert aggregator.selectivity == 1 / 8


def test_sqpr_is_as_the_paper_says() -> None:
    problem = sqpr()
    assert (len(problem.cluster.nodes), len(problem.streams), len(problem.queries)) == (50, 500, 1000)
    ways = Counter(len(q.fragments) + 1 for q in problem.queries)
    assert set(ways) == {2, 3, 4} and max(ways.values()) - min(ways.values()) <= 1
    assert {s.rate * s.tuple_bytes for s in problem.streams} == {1.25e6}
    assert all(0.001 <= o.selectivity <= 0.005 for o in problem.operators())
    alike = Counter(o.signature for o in problem.operators())
    assert max(alike.values()) > 5  # overlap


# --- topologies ------------------------------------------------------------------------------------------------------


def test_transit_stub_is_as_the_paper_says() -> None:
    cluster = transit_stub(seed=3)
    domains = Counter(node.properties["domain"] for node in cluster.nodes)
    transit = [node for node in cluster.nodes if node.properties["transit"]]
    assert (len(cluster.nodes), len(transit), len(domains)) == (1550, 50, 160)
    stubs = [size for domain, size in domains.items() if str(domain).startswith("d")]
    assert len(stubs) == 150 and np.mean(stubs) == 10 and len(set(stubs)) > 3
    latencies = cluster.network.latencies
    assert latencies is not None
    assert latencies.max() == pytest.approx(0.878, rel=1e-5)
    assert np.isfinite(latencies).all() and (latencies == latencies.T).all() and (np.diag(latencies) == 0).all()
    # Nodes of one domain are nearer to each other than to others.
    inside = [
        latencies[n, n + 1] for n in range(50, 1549) if _domain(cluster.nodes[n]) == _domain(cluster.nodes[n + 1])
    ]
    assert np.mean(inside) < 0.2 * latencies.mean()


def _domain(node: object) -> object:
    return node.properties["domain"]  # type: ignore[attr-defined]


def test_transit_stub_of_one_node() -> None:
    tiny = TransitStub(transit_domains=1, transit_nodes=1, stub_domains=0)
    latencies = transit_stub(tiny).network.latencies
    assert latencies is not None and latencies.tolist() == [[0.0]]


def test_uniform() -> None:
    cluster = uniform(Uniform(nodes=3, latency=0.5, bandwidth=10))
    assert [node.name for node in cluster.nodes] == ["n1", "n2", "n3"]
    assert (cluster.latency("n1", "n3"), cluster.bandwidth("n1", "n3"), cluster.latency("n2", "n2")) == (0.5, 10, 0)


def test_a_series_of_matrices_is_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    for n in (10, 9, 2):
        (tmp_path / f"slice{n}.txt").write_text(f"0 {n}\n{n} 0\n")
    (tmp_path / "readme.txt").write_text("not one of them")
    found = [float(m[0, 1]) * 2000 for m in matrices.slices(tmp_path)]
    assert found == pytest.approx([2, 9, 10])
    third = matrix(Matrix(path=".", slice=3), tmp_path).network.latencies
    assert third is not None and third[0, 1] == pytest.approx(0.005)
    with pytest.raises(ValueError, match="there is no slice 4"):
        matrix(Matrix(path=".", slice=4), tmp_path)


# --- what they draw --------------------------------------------------------------------------------------------------


def test_zipf_and_spread() -> None:
    rng = np.random.default_rng(1)
    probabilities = zipf(rng, 100, 1.0)
    assert probabilities.sum() == pytest.approx(1)
    assert sorted(probabilities)[-1] / sorted(probabilities)[-2] == pytest.approx(2)
    assert set(zipf(rng, 10, 0.0)) == {0.1}
    parts = spread(rng, 100, 30, least=1)
    assert (sum(parts), len(parts), min(parts) >= 1) == (100, 30, True)


def test_packets_stay_in_their_domain_as_long_as_they_can() -> None:
    cluster = transit_stub(SMALL_TOPOLOGY, 3)
    domain = {node.name: node.properties["domain"] for node in cluster.nodes}
    for one, other in combinations(cluster.nodes, 2):
        route = cluster.route(one.name, other.name)
        latency = sum(cluster.latency(a, b) for a, b in pairwise(route))
        assert latency == pytest.approx(cluster.latency(one.name, other.name), rel=1e-4)
        visited = [name for name, _ in groupby(domain[node] for node in route)]
        assert len(visited) == len(set(visited)), "no domain is left and entered again"
        assert all(name.startswith("t") for name in visited[1:-1]), "stub domains carry nobody else's packets"


def test_routes_of_the_least_latency() -> None:
    def detours(routing: str) -> int:
        """How many ways over a third node are shorter than the direct one."""
        found = transit_stub(SMALL_TOPOLOGY.model_copy(update={"routing": routing}), 3).network.latencies
        assert found is not None
        over = found[:, :, None] + found[None]  # from, over, to
        return int((over.min(axis=1) < found - 1e-6).sum())

    assert detours("latency") == 0
    assert detours("policy") > 0, "as on the Internet, an overlay may be faster"


# --- hummer ----------------------------------------------------------------------------------------------------------


def test_hummer_is_as_the_paper_says() -> None:
    problem = hummer()
    assert len([n for n in problem.cluster.nodes if n.cpu]) == 7
    assert [len(problem.streams), len(problem.queries), len(problem.fragments)] == [10, 30, 90]
    assert {s.rate * s.tuple_bytes for s in problem.streams} == {250.0}
    read = [operator.inputs for operator in problem.operators()]
    assert read[:5] == [("s1",), ("s2", "q1.i1"), ("s3",), ("s4",), ("s5", "q2.i1")]
    assert read[9:12] == [("s10",), ("s1", "q4.i1"), ("s2",)], "from the fourth query on, buffers can be shared"
    assert set(Counter(inputs[0] for inputs in read).values()) == {9}
    # Ten events of 250 bytes make an input: as many bytes per second come out as go in.
    assert index(problem).bytes_out[:].tolist() == pytest.approx([250.0] * 10 + [250.0, 275.0, 250.0] * 30)


# --- geography and drift ---------------------------------------------------------------------------------------------


def test_geography_is_as_far_as_light_in_fibre() -> None:
    """Boston to Barcelona: about 5,880 km, 29.4 ms in fibre, without detours and access."""
    cluster = geography(Geography(detour=1, detour_spread=0, access=0), cities=["Boston", "Barcelona", "Boston"])
    assert cluster.latency("n1", "n2") == pytest.approx(0.0294, abs=0.0003)
    assert cluster.latency("n1", "n3") == 0
    assert [node.properties["region"] for node in cluster.nodes] == ["us-east", "europe", "us-east"]


def test_geography_is_drawn_by_seed() -> None:
    one, again, other = (geography(Geography(nodes=40), seed) for seed in (1, 1, 2))
    assert one.network.latencies is not None and again.network.latencies is not None
    np.testing.assert_array_equal(one.network.latencies, again.network.latencies)
    np.testing.assert_array_equal(one.network.latencies, one.network.latencies.T)
    assert [n.properties for n in one.nodes] != [n.properties for n in other.nodes]


def test_latencies_drift_around_where_they_began() -> None:
    cluster = geography(Geography(nodes=30), 1)
    drifting = Drifting(node_spread=0.1, route_spread=0.2)
    base = np.asarray(cluster.network.latencies, dtype=float)
    apart = np.triu_indices(30, 1)
    logs = np.array([np.log(m[apart] / base[apart]) for m in drifting.slices(cluster, 200, 3)])
    assert logs.std() == pytest.approx(np.sqrt(2 * 0.1**2 + 0.2**2), rel=0.1), "two nodes and a route"
    assert logs.mean() == pytest.approx(0.0, abs=0.03)
    assert np.abs(np.diff(logs, axis=0)).mean() < 0.5 * np.abs(logs[100:] - logs[:100]).mean(), "little by little"


def test_no_drift_at_all() -> None:
    cluster = geography(Geography(nodes=5), 1)
    for seconds in Drifting(node_spread=0, route_spread=0).slices(cluster, 3):
        np.testing.assert_allclose(seconds, np.asarray(cluster.network.latencies))


def test_every_load_is_as_likely() -> None:
    loads = np.array(list(Drifting(every=3600, memory=600).loads(50, 200, 0.8, 1)))
    np.testing.assert_allclose(np.quantile(loads, [0.25, 0.5, 0.75]), [0.2, 0.4, 0.6], atol=0.02)
    assert loads.min() >= 0 and loads.max() <= 0.8


def test_a_series_is_written_as_numbered_files(tmp_path: Path) -> None:
    cluster = geography(Geography(nodes=4), 1)
    made = list(Drifting().slices(cluster, 11, 1))
    write_series(tmp_path, made)
    assert [file.name for file in matrices.series(tmp_path)] == [f"{n}.txt" for n in range(1, 12)]
    for wrote, read in zip(made, matrices.slices(tmp_path), strict=True):
        np.testing.assert_allclose(read, wrote, atol=1e-6)


def test_on_a_plane_distances_are_latencies() -> None:
    cluster = plane(Plane(nodes=50, diameter=0.2), 1)
    pairs = np.array([(a, b) for a in range(50) for b in range(50)])
    found = latencies(cluster, pairs[:, 0], pairs[:, 1])
    assert 0.1 < found.max() <= 0.2
    assert cluster.latency("n1", "n9") == pytest.approx(found[8]) == pytest.approx(cluster.latency("n9", "n1"))
    assert cluster.latency("n3", "n3") == 0
