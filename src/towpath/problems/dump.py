"""A problem back to a file: what `file.load` reads again as the same problem."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import yaml

from towpath.placement.cluster import NetworkLink, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.problems.tables import KINDS, PROPERTY

MATRICES = ("latencies", "next_hops", "positions")  # each in a file of its own


def dump(problem: Problem) -> str:
    """The whole problem as one YAML text. A matrix of latencies cannot be in it: `write` puts that beside the file."""
    if any(getattr(problem.cluster.network, matrix) is not None for matrix in MATRICES):
        raise ValueError("a matrix of latencies needs a file of its own: use write()")
    return _yaml(_inline(problem))


def write(problem: Problem, path: Path, tables: str = "") -> None:
    """Writes the file and what belongs beside it; with tables="parquet" or "csv", all big parts are tables."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = _with_tables(problem, path, tables) if tables else _inline(problem)
    for matrix in MATRICES:
        values = getattr(problem.cluster.network, matrix)
        if values is not None:
            name = f"{path.stem}.{matrix}.npy"
            np.save(path.with_name(name), values)
            content["network"] = {**content.get("network", {}), matrix: name}
    path.write_text(_yaml(content), encoding="utf-8")


def _yaml(content: Mapping[str, Any]) -> str:
    return yaml.dump(
        content, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=None, width=10_000, allow_unicode=True
    )


def _inline(problem: Problem) -> dict[str, Any]:
    queries: dict[str, dict[str, Any]] = {q.name: {**_said(q, "fragments"), "fragments": {}} for q in problem.queries}
    for fragment in problem.fragments:
        queries[fragment.query]["fragments"][fragment.name] = _fragment(fragment)
    return {
        "nodes": {n.name: _said(n) for n in problem.cluster.nodes},
        **_network(problem),
        "streams": {s.name: _said(s) for s in problem.streams},
        "queries": queries,
        **_places(problem),
    }


def _fragment(fragment: Fragment) -> dict[str, Any]:
    native = {} if fragment.native is None else {"native": fragment.native}
    return {**native, "operators": {o.name: _said(o) for o in fragment.operators}}


def _network(problem: Problem) -> dict[str, Any]:
    network = problem.cluster.network
    said = _said(network, *MATRICES, "links")
    if network.links:
        said["links"] = [_link(link) for link in network.links]
    return {"network": said} if said else {}


def _link(link: NetworkLink) -> dict[str, Any]:
    """In full: what a link does not say is as in the rest of the network."""
    return {
        "from": link.source,
        "to": link.target,
        "latency": link.latency,
        "bandwidth": "unlimited" if math.isinf(link.bandwidth) else link.bandwidth,
    }


def _places(problem: Problem) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if problem.pinned:
        said["pinned"] = dict(problem.pinned)
    if problem.current is not None:
        said["placement"] = {name: list(nodes) for name, nodes in problem.current.nodes.items()}
    if problem.migration_cost:
        said["migration_cost"] = problem.migration_cost
    return said


def _said(thing: Any, *without: str) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    said: dict[str, Any] = {}
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        if field.name in ("name", *without) or value == field.default or value == {}:
            continue
        said[field.name] = _plain(value)
    if len(said.get("inputs", ())) == 1:
        said["inputs"] = said["inputs"][0]
    return said


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return "unlimited" if value == math.inf else value


def write_placement(placement: Placement, path: Path) -> None:
    """As a problem file's `placement` takes it: a table, or (any other ending) YAML."""
    places = {name: list(nodes) for name, nodes in placement.nodes.items()}
    if path.suffix in KINDS:
        _write_table(_place_columns(places), path)
    else:
        path.write_text(_yaml({"placement": places}), encoding="utf-8")


# --- tables ----------------------------------------------------------------------------------------------------------


def _with_tables(problem: Problem, path: Path, kind: str) -> dict[str, Any]:
    content: dict[str, Any] = {}
    network = _network(problem)
    parts: dict[str, dict[str, list[Any]]] = {
        "nodes": _node_columns(problem.cluster.nodes),
        "streams": _columns(PlacementStream, problem.streams),
        "queries": _columns(PlacementQuery, problem.queries, "fragments"),
        "fragments": _operator_columns(problem.fragments),
    }
    places = _places(problem)
    for section in ("pinned", "placement"):
        if section in places:
            parts[section] = _place_columns(places.pop(section))
    for section, columns in parts.items():
        content[section] = f"{path.stem}.{section}.{kind}"
        _write_table(columns, path.with_name(content[section]))
    if problem.cluster.network.links:
        links = problem.cluster.network.links
        columns = {"from": [k.source for k in links], "to": [k.target for k in links]}
        columns |= {key: [getattr(k, key) for k in links] for key in ("latency", "bandwidth")}
        network["network"]["links"] = f"{path.stem}.links.{kind}"
        _write_table(columns, path.with_name(network["network"]["links"]))
    return {**content, **network, **places}


def _columns(of: type, things: Iterable[Any], *without: str) -> dict[str, list[Any]]:
    rows = list(things)
    names = [field.name for field in dataclasses.fields(of) if field.name not in without]
    return {name: [getattr(row, name) for row in rows] for name in names}


def _node_columns(nodes: tuple[Node, ...]) -> dict[str, list[Any]]:
    columns = _columns(Node, nodes, "properties")
    for key in dict.fromkeys(key for node in nodes for key in node.properties):
        columns[f"{PROPERTY}{key}"] = [node.properties.get(key) for node in nodes]
    return columns


def _operator_columns(fragments: tuple[Fragment, ...]) -> dict[str, list[Any]]:
    rows = [(fragment, operator) for fragment in fragments for operator in fragment.operators]
    columns: dict[str, list[Any]] = {
        "fragment": [fragment.name for fragment, _ in rows],
        "query": [fragment.query for fragment, _ in rows],
        "native": [fragment.native for fragment, _ in rows],
        "operator": [operator.name for _, operator in rows],
    }
    columns |= _columns(Operator, (operator for _, operator in rows), "name")
    columns["inputs"] = [" ".join(inputs) for inputs in columns["inputs"]]
    return columns


def _place_columns(places: Mapping[str, str | list[str]]) -> dict[str, list[Any]]:
    pairs = [(f, n) for f, nodes in places.items() for n in ([nodes] if isinstance(nodes, str) else nodes)]
    return {"fragment": [f for f, _ in pairs], "node": [n for _, n in pairs]}


def _write_table(columns: Mapping[str, list[Any]], path: Path) -> None:
    table = pa.table(dict(columns))
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.csv.write_csv(table, path)
