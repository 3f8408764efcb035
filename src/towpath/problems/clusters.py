"""The sections `nodes` and `network` of a problem file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.config.settings import shown
from towpath.placement.cluster import Cluster, Network, NetworkLink, Node
from towpath.problems import tables
from towpath.problems.entries import LinkEntry, NetworkEntry, NodeEntry
from towpath.problems.generate import matrix
from towpath.problems.reading import ProblemReader


def read(reader: ProblemReader, nodes: Any, network: Any) -> Cluster:
    if not nodes:
        problem = "is missing" if nodes is None else f"expected at least one, got {shown(nodes)}"
        reader.refuse("nodes", problem, "for example nodes: {n: {count: 32}}, or generate a topology")
    made = _nodes(reader, nodes)
    return Cluster(made, _network(reader, network, len(made)))


def _nodes(reader: ProblemReader, section: Any) -> tuple[Node, ...]:
    table = reader.table(section, "node", tables.NODES)
    if table is not None:
        properties = list(table.properties)
        values = list(zip(*table.properties.values(), strict=True))
        of_node = [{k: v for k, v in zip(properties, row, strict=True) if v is not None} for row in values]
        return tuple(
            Node(name, cpu, memory, into, out, of_node[n] if of_node else {}, transfer)
            for n, (name, cpu, memory, into, out, transfer) in enumerate(table.rows())
        )
    nodes: list[Node] = []
    for key, value in reader.entries(section, "nodes", "nodes: {n1: {cpu: 2, memory: 4 GB}}").items():
        where = f"nodes.{key}"
        entry = reader.checked(NodeEntry, value, where, ("node", key)) or NodeEntry()
        names = [key] if entry.count is None else [f"{key}{n}" for n in range(1, entry.count + 1)]
        for name in names:
            reader.put(("node", name), where)
            nodes.append(entry.node(name))
    return tuple(nodes)


def _network(reader: ProblemReader, section: Any, nodes: int) -> Network:
    entry = reader.checked(NetworkEntry, section, "network")
    if entry is None:
        return Network()
    links = tuple(_links(reader, entry))
    matrices = _latencies(reader, entry, nodes), _next_hops(reader, entry, nodes), _positions(reader, entry, nodes)
    return Network(entry.latency, entry.bandwidth, entry.medium, links, *matrices)


def _links(reader: ProblemReader, network: NetworkEntry) -> list[NetworkLink]:
    table = reader.table(network.links, "link", tables.LINKS)
    if table is not None:
        return [NetworkLink(*row) for row in table.rows()]
    if network.links is not None and not isinstance(network.links, list):
        example = "links: [{from: n1, to: n2, latency: 4 ms}]"
        reader.refuse("network.links", f"expected a list, got {shown(network.links)}", f"as in {example}")
        return []
    links: list[NetworkLink] = []
    for n, value in enumerate(network.links or []):
        where = f"network.links.{n}"
        entry = reader.checked(LinkEntry, value, where)
        for link in entry.links(network.latency, network.bandwidth) if entry else ():
            reader.put(("link", f"{link.source} -> {link.target}"), where)
            links.append(link)
    return links


def _latencies(reader: ProblemReader, network: NetworkEntry, nodes: int) -> NDArray[np.float32] | None:
    if network.latencies is None:
        return None
    try:
        found = matrix.read(reader.folder / network.latencies)
    except ValueError as error:
        reader.refuse("network.latencies", str(error), "whitespace between round-trip times in ms, a row for each node")
        return None
    if nodes and len(found) != nodes:
        message = f"expected a row for each of the {nodes} nodes, got {len(found)} rows"
        reader.refuse("network.latencies", message, "change nodes, or leave nodes out and generate a matrix topology")
        return None
    return found


def _next_hops(reader: ProblemReader, network: NetworkEntry, nodes: int) -> NDArray[np.int32] | None:
    if network.next_hops is None:
        return None
    found = _array(reader, "next_hops", network.next_hops, "integers")
    if found is None:
        return None
    if found.shape != (nodes, nodes) or not np.issubdtype(found.dtype, np.integer) or _lost(found):
        message = f"expected, for each of the {nodes} nodes as target, a way from every node, got {_shape(found)}"
        reader.refuse("network.next_hops", message, "write the routes again, or leave next_hops out")
        return None
    return found.astype(np.int32)


def _positions(reader: ProblemReader, network: NetworkEntry, nodes: int) -> NDArray[np.float64] | None:
    if network.positions is None:
        return None
    found = _array(reader, "positions", network.positions, "numbers")
    if found is None:
        return None
    numbers = np.issubdtype(found.dtype, np.number)
    if found.ndim != 2 or len(found) != nodes or not numbers or not np.isfinite(found).all():
        message = f"expected a row of finite numbers for each of the {nodes} nodes, got {_shape(found)}"
        reader.refuse("network.positions", message, "write the positions again, or leave them out")
        return None
    return found.astype(np.float64)


def _array(reader: ProblemReader, key: str, file: str, of: str) -> NDArray[Any] | None:
    path = reader.folder / file
    try:
        found: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        reader.refuse(f"network.{key}", f"{path} cannot be read: {error}", f"an .npy file of {of}")
        return None
    return found


def _shape(found: NDArray[Any]) -> str:
    return f"{' x '.join(map(str, found.shape))} {found.dtype}"


def _lost(next_hops: NDArray[Any]) -> bool:
    """Whether packets go to a node that is not there, or in circles: as many hops as there are nodes lead anywhere."""
    count = len(next_hops)
    if next_hops.min(initial=0) < 0 or next_hops.max(initial=0) >= count:
        return True
    at = np.asarray(next_hops)
    for _ in range(count.bit_length()):
        at = np.take_along_axis(at, at, axis=1)  # twice as many hops
    return bool((at != np.arange(count)[:, None]).any())
