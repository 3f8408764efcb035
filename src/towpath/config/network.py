"""The `network` section of a job file: how far nodes are from each other, where a site knows that."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pydantic import Field, model_validator

from towpath.config.settings import Duration, Location, Settings, listed, meant, refusal
from towpath.errors import Mistake

Distances = Mapping[tuple[str, str], float]  # by two nodes in the order of their names: seconds one way


class NetworkDef(Settings):
    # Round trips, by one node and another.
    distances: dict[str, dict[str, Duration]] = Field({}, examples=["{berlin: {paris: 20 ms}}"])
    matrix: Location | None = Field(None, examples=["./rtt.txt"])  # instead: a file, a row for each node
    inject: bool = Field(False, examples=["true"])  # let readers wait as if their nodes were so far apart

    @model_validator(mode="after")
    def _says_it_once(self) -> NetworkDef:
        if self.distances and self.matrix is not None:
            raise refusal("distances and matrix both say how far nodes are apart", "remove one of them")
        return self


def given(network: NetworkDef) -> Distances:
    """As `distances` says."""
    found: dict[tuple[str, str], float] = {}
    for one, others in network.distances.items():
        for other, round_trip_us in others.items():
            found[min(one, other), max(one, other)] = round_trip_us / 2e6
    return found


def mistakes(network: NetworkDef, known: Distances, nodes: Collection[str]) -> Iterator[Mistake]:
    said: dict[tuple[str, str], str] = {}
    for one, others in network.distances.items():
        for name in (one, *others):
            if name not in nodes:
                yield Mistake("network.distances", f"there is no node {name}", meant(name, nodes))
        for other in others:
            where, between = f"network.distances.{one}.{other}", (min(one, other), max(one, other))
            if one == other:
                yield Mistake(where, "a node has no distance to itself", "name two nodes")
            if between in said:
                yield Mistake(where, f"{said[between]} says it already", "distances are the same both ways")
            said[between] = where
    names = sorted(nodes)
    missing = [f"{a} and {b}" for n, a in enumerate(names) for b in names[n + 1 :] if (a, b) not in known]
    if network.inject and missing:
        hint = "delays are injected as the file states them: say all distances, or do not inject"
        yield Mistake("network.inject", f"the distance is missing of {listed(missing)}", hint)
