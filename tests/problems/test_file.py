"""Problem files: the good ones are read as they should be, the bad ones are answered as their first lines say.

A bad file begins with the whole answer, one comment line each; $BAD stands for tests/data/bad_problems.
"""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from towpath.errors import ProblemFileError
from towpath.placement.cluster import NetworkLink, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.placement.validate import validate
from towpath.problems import load

DATA = Path(__file__).parents[1] / "data"
BAD = DATA / "bad_problems"
EXAMPLE = Path(__file__).parents[2] / "examples" / "problem.yaml"
SMALL = """
nodes: {n: {count: 2}}
streams: {s: {node: n1, rate: 10}}
queries: {q: {operators: {a: {inputs: s}, b: {inputs: a}}}}
"""


def write(folder: Path, text: str) -> Problem:
    file = folder / "problem.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file)


@pytest.mark.parametrize("file", sorted(BAD.glob("*.yaml")), ids=lambda f: f.stem)
def test_bad_file_is_answered(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    expected = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    with pytest.raises(ProblemFileError) as caught:
        load(file)
    answer = "\n".join(str(problem) for problem in caught.value.problems)
    assert answer.replace(str(BAD), "$BAD").splitlines() == expected
    assert str(caught.value).startswith(f"{file} cannot be used:\n")


def test_there_are_bad_files() -> None:
    assert len(list(BAD.glob("*.yaml"))) >= 30


def test_the_example_is_valid() -> None:
    problem = load(EXAMPLE)
    assert validate(problem) == []
    assert [node.name for node in problem.cluster.nodes] == ["edge1", "edge2", "edge3", "core"]
    assert problem.query["by-category"].sink == "edge3"
    assert problem.pinned == {"suspicious.bids": "edge1"}


def test_every_key(tmp_path: Path) -> None:
    problem = load(DATA / "problems" / "every_key.yaml")
    small = Node("small1", 0.5, 2e9, 12.5e6, 125e6, {"rack": "a", "fast": True, "age": 3}, 5e-6)
    assert problem.cluster.nodes == (small, replace(small, name="small2"), Node("core"))
    network = problem.cluster.network
    assert (network.latency, network.bandwidth, network.medium) == (0.001, 1e6, 4e6)
    assert network.links == (
        NetworkLink("small1", "core", 0.004, 1e6),
        NetworkLink("core", "small1", 0.004, 1e6),
        NetworkLink("core", "small2", 0.001, inf),
    )
    assert problem.streams == (PlacementStream("s", "small1", 250.0, 2_000.0), PlacementStream("t", "core", 0.5))
    join = Operator("q.j", ("q.f", "t"), "join", 80e-6, 0.5, 2e6, 50.0, "j")
    assert problem.fragments == (
        Fragment("q.1", "q", (Operator("q.f", ("s",), cost=20e-6),), "s"),
        Fragment("q.2", "q", (join, Operator("q.a", ("q.j",), "aggregate"))),
        Fragment("r.a", "r", (Operator("r.a", ("s",)),), "s"),
        Fragment("r.b", "r", (Operator("r.b", ("r.a", "q.f"), "union"),)),
    )
    assert problem.queries == (
        PlacementQuery("q", ("q.1", "q.2"), "core"),
        PlacementQuery("r", ("r.a", "r.b"), None, 2),
    )
    assert problem.pinned == {"q.1": "small1"}
    assert problem.current == Placement({"q.1": ("small1",), "r.a": ("core", "small2")})
    assert problem.migration_cost == 1e-8


def test_json_is_read(tmp_path: Path) -> None:
    content = {
        "nodes": {"n1": {}},
        "streams": {"s": {"node": "n1", "rate": 1}},
        "queries": {"q": {"operators": {"a": {"inputs": ["s"]}}}},
    }
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(content))
    assert load(file).fragments == (Fragment("a", "q", (Operator("a", ("s",)),), "s"),)


def test_latencies_are_half_of_round_trips_and_may_be_unknown(tmp_path: Path) -> None:
    (tmp_path / "rtt.txt").write_text("0 10 -1\n10 0 nan\n0 30 0\n")
    problem = write(tmp_path, SMALL.replace("count: 2", "count: 3") + "network: {latencies: rtt.txt}\n")
    found = problem.cluster.network.latencies
    assert found is not None
    expected = [[0, 0.005, np.nan], [0.005, 0, np.nan], [np.nan, 0.015, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_operators_are_put_after_their_inputs(tmp_path: Path) -> None:
    written = "{q: {fragments: {f: {operators: {c: {inputs: b}, b: {inputs: a}, a: {inputs: s}}}}}}"
    problem = write(tmp_path, SMALL.partition("queries:")[0] + f"queries: {written}\n")
    assert [o.name for o in problem.fragments[0].operators] == ["a", "b", "c"]


def test_tables_take_units_and_leave_out_what_is_default(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("name,memory,properties.rack\nn1,2 GB,a\nn2,,\n")
    (tmp_path / "f.csv").write_text("fragment,query,operator,inputs,cost\nf,q,a,s,20 us\nf,q,b,a s,\n")
    (tmp_path / "places.csv").write_text("fragment,node\nf,n1\nf,n2\n")
    text = "nodes: nodes.csv\nstreams: {s: {node: n1, rate: 1}}\nfragments: f.csv\nplacement: places.csv\n"
    problem = write(tmp_path, text + "queries: {q: {copies: 2, sink: n2}}\n")
    assert problem.cluster.nodes == (Node("n1", memory=2e9, properties={"rack": "a"}), Node("n2"))
    assert problem.fragments[0].operators == (Operator("a", ("s",), cost=20e-6), Operator("b", ("a", "s")))
    assert problem.queries == (PlacementQuery("q", ("f",), "n2", 2),)
    assert problem.current == Placement({"f": ("n1", "n2")})


def test_numbers_of_a_table_may_be_larger_than_a_float_is_exact(tmp_path: Path) -> None:
    (tmp_path / "streams.csv").write_text(f"name,node,rate\ns,n1,{2**53 + 1}\nt,n1,1\n")
    problem = write(tmp_path, "nodes: {n1: {}}\nstreams: streams.csv\n")
    assert [stream.rate for stream in problem.streams] == [2**53 + 1, 1]


def test_many_mistakes_of_one_column_are_reported_in_short(tmp_path: Path) -> None:
    rows = "".join(f"s{n},n1,-1\n" for n in range(1000))
    (tmp_path / "streams.csv").write_text("name,node,rate\n" + rows)
    with pytest.raises(ProblemFileError) as caught:
        write(tmp_path, "nodes: {n1: {}}\nstreams: streams.csv\n")
    assert len(caught.value.problems) == 11
    assert str(caught.value.problems[-1]) == "streams.csv, rate: and 990 more rows like these"


def test_a_file_that_is_missing_or_no_text_is_answered(tmp_path: Path) -> None:
    with pytest.raises(ProblemFileError, match="cannot be read: No such file or directory"):
        load(tmp_path / "none.yaml")
    (tmp_path / "problem.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProblemFileError, match="is not UTF-8 text"):
        load(tmp_path / "problem.yaml")


@pytest.mark.parametrize("content", ['name,node\n"s', "PAR1"])
def test_a_damaged_table_is_answered(tmp_path: Path, content: str) -> None:
    name = "s.parquet" if content == "PAR1" else "s.csv"
    (tmp_path / name).write_text(content)
    with pytest.raises(ProblemFileError, match=name):
        write(tmp_path, f"nodes: {{n1: {{}}}}\nstreams: {name}\n")


def test_the_seed_of_the_file_is_overruled(tmp_path: Path) -> None:
    file = tmp_path / "problem.yaml"
    file.write_text("generate: {seed: 1, workload: {type: zhou, queries: 20}}\n")
    assert load(file) == load(file, seed=1)
    assert load(file).fragments != load(file, seed=2).fragments


def test_a_workload_is_put_on_the_nodes_that_are_written(tmp_path: Path) -> None:
    problem = write(tmp_path, "nodes: {x: {count: 3}}\ngenerate: {workload: {type: zhou, queries: 5}}\n")
    assert {stream.node for stream in problem.streams} == {"x1", "x2", "x3"}


def test_the_collector_is_left_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(ProblemFileError):
        write(tmp_path, "nodes: {}\n")
    assert gc.isenabled()
