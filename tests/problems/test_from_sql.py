from __future__ import annotations

from pathlib import Path

import pytest

from towpath.placement.problem import Problem
from towpath.problems import load

STREAMS = """
nodes: {n: {count: 2}}
streams:
  bids: {node: n1, rate: 1000, schema: {auction: bigint, price: double, at: timestamp}, time: at}
  items: {node: n2, rate: 10, tuple_bytes: 300, schema: {id: bigint, name: string, at: timestamp}, time: at}
costs: {filter: 10 us}
"""
JOIN = (
    "SELECT b.price, a.name FROM bids [RANGE 10 SECONDS] AS b, items [RANGE 10 SECONDS] AS a "
    "WHERE b.auction = a.id AND b.price > 100"
)


def problem(folder: Path, **queries: str) -> Problem:
    file = folder / "problem.yaml"
    entries = "".join(f"  {name}: {sql}\n" for name, sql in queries.items())
    file.write_text(f"{STREAMS}queries:\n{entries}")
    return load(file)


def test_a_filter_is_one_fragment_at_its_stream(tmp_path: Path) -> None:
    found = problem(tmp_path, q="SELECT auction, price FROM bids WHERE price > 900")
    assert [(f.name, f.query, f.native) for f in found.fragments] == [("q.1", "q", "bids")]
    filter_, project = found.fragments[0].operators
    assert (filter_.kind, filter_.inputs, filter_.cost) == ("filter", ("bids",), 10e-6)
    assert filter_.selectivity == pytest.approx(1 / 3)  # a comparison
    assert (project.kind, project.inputs, project.selectivity) == ("project", (filter_.name,), 1.0)
    assert (filter_.tuple_bytes, project.tuple_bytes) == (100.0, 16.0)


def test_a_join_is_cut_by_stream_and_its_heavier_side_takes_it(tmp_path: Path) -> None:
    found = problem(tmp_path, q=JOIN)
    # Nothing is done to items before the join, so there is one fragment.
    assert [(f.native, [o.kind for o in f.operators]) for f in found.fragments] == [
        ("bids", ["filter", "join", "project"])
    ]
    join = found.fragments[0].operators[1]
    assert set(join.inputs) == {found.fragments[0].operators[0].name, "items"}
    # 10 seconds of 1000 / 3 bids of 100 bytes and of 10 items of 300.
    assert join.state_bytes == pytest.approx(10 * (1000 / 3 * 100 + 10 * 300))


def test_an_aggregate_is_cut_off_its_join_as_when_it_runs(tmp_path: Path) -> None:
    counted = JOIN.replace("b.price, a.name", "a.name, count(*) AS n") + " GROUP BY a.name"
    found = problem(tmp_path, q=f"{{sql: '{counted}', fragmenter: one_per_operator}}")
    assert [[o.kind for o in f.operators] for f in found.fragments] == [["filter", "join"], ["aggregate"]]


def test_equal_parts_of_queries_have_equal_signatures(tmp_path: Path) -> None:
    found = problem(
        tmp_path,
        one="SELECT price FROM bids WHERE price > 100",
        two="SELECT auction FROM bids AS x WHERE 100 < x.price",
        three="SELECT price FROM bids WHERE price > 101",
        four=JOIN,
    )
    filters = {f.query: f.operators[0].signature for f in found.fragments}
    assert filters["one"] == filters["two"] == filters["four"] != filters["three"]
    projects = [o.signature for o in found.operators() if o.kind == "project"]
    assert len(set(projects)) == 4


def test_aggregates_and_unions(tmp_path: Path) -> None:
    found = problem(
        tmp_path,
        a="SELECT auction, count(*) AS n FROM bids [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY auction",
        u="SELECT price FROM bids WHERE price > 5 UNION ALL SELECT price FROM bids WHERE price < 1",
    )
    aggregate = found.fragment["a.1"].operators[-1]
    assert aggregate.kind == "aggregate"
    assert aggregate.selectivity == pytest.approx(2.0 / 1000)  # 10 groups every 5 seconds
    assert aggregate.state_bytes == pytest.approx(20 * 16)
    assert found.query["u"].fragments == ("u.1", "u.2")
