"""The policy as a whole, in the simulator: where operators go, when they stay, and that nothing is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from math import dist

import numpy as np
import pytest

from towpath import policies
from towpath.lab.sim import Drift, SimulationOutcome, simulate
from towpath.placement.cluster import Cluster, Network, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.policies.sbon.messages import Claim, Done, Message, Ping, Pong, size
from towpath.policies.sbon.optimiser import LocalOptimiser
from towpath.policies.sbon.options import Options

QUICK = Options(every=5.0, sample=0.5, window=1.0)
LINE = {"p1": 0.0, "p2": 0.01, "m": 0.03, "far": 0.08, "c": 0.1}  # seconds along a line


def line(**at: float) -> Cluster:
    places = np.array(list(at.values()))
    matrix = np.abs(places[:, None] - places[None]).astype(np.float32)
    return Cluster(tuple(map(Node, at)), Network(latencies=matrix))


def join(cluster: Cluster, queries: int = 1, signature: str | None = None, cost: float = 0.0) -> Problem:
    """Two producers, a join that lets a quarter through, a consumer."""
    streams = (PlacementStream("s1", "p1", 20.0), PlacementStream("s2", "p2", 20.0))
    names = [f"q{n}" for n in range(1, queries + 1)]
    fragments = tuple(
        Fragment(q, q, (Operator(f"{q}.o", ("s1", "s2"), "join", cost, 0.25, signature=signature),)) for q in names
    )
    return Problem(cluster, streams, fragments, tuple(PlacementQuery(q, (q,), "c") for q in names))


def run(
    problem: Problem, placement: Placement, options: Options = QUICK, seconds: float = 60.0, **more: object
) -> SimulationOutcome:
    made = policies.start("sbon", problem, placement, options)
    return simulate(problem, placement, seconds, actors=made, **more)  # type: ignore[arg-type]


def test_an_operator_goes_to_where_its_springs_are_at_rest() -> None:
    """By hand: rates 2000, 2000 and 1000 B/s draw it to (2 * 10 + 100) / 5 = 24 ms, near m."""
    problem = join(line(**LINE))
    outcome = run(problem, Placement.single({"q1": "far"}))
    assert outcome.placement.nodes == {"q1": ("m",)}
    (move,) = outcome.moves.to_dict("records")
    assert move["failed"] == "" and move["reason"].startswith("it is the nearest with room: network usage")
    assert sum(outcome.lost.values()) == 0


def test_it_stays_where_it_is_when_too_little_would_be_saved() -> None:
    problem = join(line(**LINE))
    outcome = run(problem, Placement.single({"q1": "far"}), replace(QUICK, gain=0.9))
    assert outcome.placement.nodes == {"q1": ("far",)}
    assert outcome.notes["text"].str.contains("m would save too little").any()


def test_it_is_not_mapped_again_until_it_is_drawn_elsewhere() -> None:
    problem = join(line(**LINE))
    outcome = run(problem, Placement.single({"q1": "m"}))
    assert len(outcome.notes) == 1, "its node is the nearest, which was found once"


def test_it_follows_when_latencies_change() -> None:
    """The consumer comes to where the producers are, and m goes far away."""
    problem = join(line(**LINE))
    later = line(**{**LINE, "c": 0.0, "p2": 0.005, "m": 0.2})
    drift = Drift(60.0, later.network.latencies)  # type: ignore[arg-type]
    outcome = run(problem, Placement.single({"q1": "m"}), seconds=300.0, faults=[drift])
    assert outcome.placement.nodes["q1"][0] in ("p1", "p2", "c")
    assert outcome.moves["asked"].min() > 60.0


def test_pinned_operators_and_copies_stay() -> None:
    problem = join(line(**LINE), queries=2)
    queries = (problem.queries[0], replace(problem.queries[1], copies=2))
    fixed = replace(problem, pinned={"q1": "far"}, queries=queries)
    outcome = run(fixed, Placement({"q1": ("far",), "q2": ("far", "c")}))
    assert outcome.moves.empty


def test_equal_operators_on_one_node_go_together() -> None:
    problem = join(line(**LINE), queries=3, signature="same")
    outcome = run(problem, Placement.single(dict.fromkeys(("q1", "q2", "q3"), "far")))
    assert set(outcome.placement.nodes.values()) == {("m",)}
    assert len(outcome.moves) == 3


def test_an_operator_goes_to_an_equal_one_nearby() -> None:
    """Whoever looks first joins the other; then both, as one, go to where they are drawn."""
    problem = join(line(**LINE), queries=2, signature="same")
    outcome = run(problem, Placement.single({"q1": "m", "q2": "far"}))
    assert outcome.placement.nodes == {"q1": ("m",), "q2": ("m",)}
    assert outcome.moves["reason"].iloc[0].startswith("an equal operator runs there")


def test_a_full_node_is_passed_over() -> None:
    """Each needs 0.6 of a node: not both find room on m."""
    problem = join(line(**LINE), queries=2, cost=0.015)
    outcome = run(problem, Placement.single({"q1": "far", "q2": "c"}), replace(QUICK, load_scale=0.0))
    assert outcome.placement.nodes["q1"] != outcome.placement.nodes["q2"]
    assert ("m",) in outcome.placement.nodes.values()


def chain() -> Problem:
    """Two joins and a third above them: all neighbours of each other's neighbours."""
    cluster = line(**LINE)
    streams = tuple(PlacementStream(f"s{n}", at, 20.0) for n, at in enumerate(("p1", "p2", "p1", "p2")))
    operators = (
        Operator("a.o", ("s0", "s1"), "join", 0.0, 0.25),
        Operator("b.o", ("s2", "s3"), "join", 0.0, 0.25),
        Operator("top.o", ("a.o", "b.o"), "join", 0.0, 0.25),
    )
    fragments = tuple(Fragment(o.name[:-2], "q", (o,)) for o in operators)
    return Problem(cluster, streams, fragments, (PlacementQuery("q", ("a", "b", "top"), "c"),))


def test_a_whole_graph_settles_and_only_one_of_its_operators_is_on_its_way_at_a_time() -> None:
    problem = chain()
    outcome = run(problem, Placement.single({"a": "far", "b": "c", "top": "far"}), seconds=120.0)
    assert outcome.placement.nodes["a"][0] in ("p1", "p2", "m")
    assert outcome.placement.nodes["b"][0] in ("p1", "p2", "m")
    moves = outcome.moves.sort_values("asked")
    assert len(moves) >= 2
    assert (moves["asked"].to_numpy()[1:] >= moves["ended"].to_numpy()[:-1]).all(), "migration is atomic for a query"


def test_the_new_node_of_an_operator_looks_after_it() -> None:
    problem = join(line(**LINE))
    made = policies.start("sbon", problem, Placement.single({"q1": "far"}), QUICK)
    simulate(problem, Placement.single({"q1": "far"}), 60.0, actors=made)
    holding = [a.address for a in made.actors if isinstance(a, LocalOptimiser) and a.holdings.fragments]
    assert holding == ["m"]


def test_coordinates_are_kept_up_to_date_by_pings() -> None:
    """Nothing is known to begin with; after a while distances in the space are the latencies."""
    problem = join(line(**LINE))
    placement = Placement.single({"q1": "m"})
    made = policies.start("sbon", problem, placement, replace(QUICK, rounds=0, settle=1e6))
    simulate(problem, placement, 120.0, actors=made)
    at = {a.address: a.latency.position for a in made.actors if isinstance(a, LocalOptimiser)}
    for one, other in (("p1", "c"), ("p2", "far"), ("m", "far")):
        assert dist(at[one], at[other]) == pytest.approx(abs(LINE[one] - LINE[other]), rel=0.1)


@pytest.mark.parametrize(
    ("message", "least"),
    [(Ping(1.0), 74), (Pong(1.0, (0.0, 0.0, 0.0), 0.1), 106), (Claim(1, ("query q",), ("f",), ()), 100), (Done(1), 90)],
)
def test_messages_have_a_size(message: Message, least: int) -> None:
    assert least <= size(message) < 2 * least
