"""Plans drawn as text: "a(s1) b(s2) j(a b)" has the operators a, b and j; what is no operator is a stream."""

from __future__ import annotations

import re

from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import Fragment, Operator, PlacementQuery, PlacementStream, Problem


def drawn(*plans: str, nodes: int = 2, **node: object) -> Problem:
    """A query for each plan and a fragment for each operator; streams enter at `source`, which has no cpu."""
    queries, fragments, streams = [], [], {}
    for number, text in enumerate(plans, start=1):
        made = [(name, tuple(inputs.split())) for name, inputs in re.findall(r"(\w+)\(([^)]*)\)", text)]
        names = [name for name, _ in made]
        for name, inputs in made:
            kind = "join" if len(inputs) > 1 else "filter"
            selectivity = 2.0 if kind == "join" else 1.0
            operator = Operator(name, inputs, kind, 1e-3, selectivity, state_bytes=1000.0 * (kind == "join"))
            fragments.append(Fragment(name, f"q{number}", (operator,)))
            streams |= {i: PlacementStream(i, "source", 10.0) for i in inputs if i not in names}
        queries.append(PlacementQuery(f"q{number}", tuple(names)))
    cluster = Cluster((*(Node(f"n{n}", **node) for n in range(1, nodes + 1)), Node("source", cpu=0.0)))  # type: ignore[arg-type]
    return Problem(cluster, tuple(streams.values()), tuple(fragments), tuple(queries))


def where(placement: object) -> dict[str, str]:
    """Node -> the names of what is there, in the order of the placement."""
    found: dict[str, list[str]] = {}
    for fragment, nodes in placement.nodes.items():  # type: ignore[attr-defined]
        for node in nodes:
            found.setdefault(node, []).append(fragment)
    return {node: " ".join(names) for node, names in sorted(found.items())}
