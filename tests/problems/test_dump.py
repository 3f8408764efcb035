from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from towpath.errors import ProblemFileError
from towpath.placement.cluster import Cluster, Network, NetworkLink
from towpath.placement.problem import Placement, Problem
from towpath.problems import dump, load, write
from towpath.problems.dump import write_placement
from towpath.problems.generate.dcape import Dcape, dcape
from towpath.problems.generate.plane import Plane, plane
from towpath.problems.generate.sbon import Sbon, sbon
from towpath.problems.generate.sqpr import Sqpr, sqpr
from towpath.problems.generate.transit_stub import TransitStub, transit_stub
from towpath.problems.generate.zhou import Zhou, zhou

DATA = Path(__file__).parents[1] / "data"
EXAMPLE = Path(__file__).parents[2] / "examples" / "problem.yaml"


def _placed(problem: Problem) -> Problem:
    nodes = [node.name for node in problem.cluster.nodes]
    places = {f.name: tuple(nodes[n % len(nodes)] for n in range(2)) for f in problem.fragments}
    pinned = {problem.fragments[0].name: nodes[0]}
    return replace(problem, current=Placement(places), pinned=pinned, migration_cost=1e-9)


SMALL_TOPOLOGY = TransitStub(transit_domains=2, transit_nodes=2, stub_domains=4, stub_nodes=3)
PROBLEMS = {
    "every_key": load(DATA / "problems" / "every_key.yaml"),
    "example": load(EXAMPLE),
    "zhou": zhou(Zhou(queries=20, shared=0.5)),
    "placed": _placed(zhou(Zhou(queries=20))),
    "dcape": dcape(Dcape(queries=2)),
    "sqpr": sqpr(Sqpr(queries=20)),
    "links": replace(dcape(), cluster=Cluster(dcape().cluster.nodes, Network(links=(NetworkLink("n1", "n2", 0.5),)))),
}


def same(one: Problem, other: Problem) -> bool:
    """A matrix has no equality that is true or false."""
    networks = [p.cluster.network for p in (one, other)]
    plain = [replace(network, latencies=None, next_hops=None, positions=None) for network in networks]
    bare = [replace(p, cluster=Cluster(p.cluster.nodes, n)) for p, n in zip((one, other), plain, strict=True)]
    return bare[0] == bare[1] and all(
        np.array_equal(*(np.array(getattr(network, matrix), dtype=float) for network in networks), equal_nan=True)
        for matrix in ("latencies", "next_hops", "positions")
    )


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_text_is_read_as_the_same_problem(tmp_path: Path, name: str) -> None:
    file = tmp_path / "problem.yaml"
    file.write_text(dump(PROBLEMS[name]))
    assert load(file) == PROBLEMS[name]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_tables_are_read_as_the_same_problem(tmp_path: Path, name: str, kind: str) -> None:
    write(PROBLEMS[name], tmp_path / "problem.yaml", kind)
    assert load(tmp_path / "problem.yaml") == PROBLEMS[name]


@pytest.mark.parametrize("kind", ["", "parquet", "csv"])
def test_latencies_are_written_beside(tmp_path: Path, kind: str) -> None:
    problem = sbon(Sbon(queries=3), 1, transit_stub(SMALL_TOPOLOGY))
    with pytest.raises(ValueError, match="needs a file of its own"):
        dump(problem)
    write(problem, tmp_path / "problem.yaml", kind)
    assert same(load(tmp_path / "problem.yaml"), problem)


def test_positions_are_written_beside(tmp_path: Path) -> None:
    problem = sbon(Sbon(queries=3), 1, plane(Plane(nodes=12), 1))
    write(problem, tmp_path / "problem.yaml")
    assert same(load(tmp_path / "problem.yaml"), problem)
    np.save(tmp_path / "problem.positions.npy", np.zeros((11, 2)))
    with pytest.raises(ProblemFileError, match="a row of finite numbers for each of the 12 nodes, got 11 x 2 float64"):
        load(tmp_path / "problem.yaml")


def test_routes_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    write(sbon(Sbon(queries=3), 1, transit_stub(SMALL_TOPOLOGY)), tmp_path / "problem.yaml")
    routes = np.load(tmp_path / "problem.next_hops.npy")
    routes[3, [0, 1]] = [1, 0]  # packets to the fourth node go to and fro
    np.save(tmp_path / "problem.next_hops.npy", routes)
    with pytest.raises(ProblemFileError, match="a way from every node"):
        load(tmp_path / "problem.yaml")


@pytest.mark.parametrize("name", ["placement.yaml", "placement.csv", "placement.parquet"])
def test_a_placement_is_written_as_the_file_takes_it(tmp_path: Path, name: str) -> None:
    problem = PROBLEMS["placed"]
    assert problem.current is not None
    write(replace(problem, current=None), tmp_path / "problem.yaml")
    write_placement(problem.current, tmp_path / name)
    text = (tmp_path / name).read_text() if name.endswith(".yaml") else f"placement: {name}\n"
    with (tmp_path / "problem.yaml").open("a") as file:
        file.write(text)
    assert load(tmp_path / "problem.yaml") == problem
