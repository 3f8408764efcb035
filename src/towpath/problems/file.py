"""The problem file: what is to be placed, and where it may go. docs/placement.md describes every key."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from towpath.config.settings import Settings, Whole, meant, shown
from towpath.config.yamlfile import read_with_lines
from towpath.errors import ProblemFileError
from towpath.placement.cluster import Cluster
from towpath.placement.problem import Placement, Problem
from towpath.placement.validate import validate
from towpath.placement.violation import Violation
from towpath.problems import clusters, tables, workloads
from towpath.problems.entries import TopEntry
from towpath.problems.generate.registry import TOPOLOGIES, WORKLOADS, GeneratedTopology, GeneratedWorkload
from towpath.problems.reading import ProblemReader


class _GenerateEntry(Settings):
    seed: Whole = 0
    topology: Any = None
    workload: Any = None


def load(path: Path, seed: int | None = None) -> Problem:
    """The problem of a file; `seed` overrules the file's. Raises ProblemFileError with every mistake in it."""
    path = path.absolute()
    title = f"{path} cannot be used:"
    raw, lines = read_with_lines(path, title, ProblemFileError)
    reader = ProblemReader(path, lines)
    with _no_collection():
        problem = _problem(reader, raw, seed)
    if problem is None or reader.problems:
        raise ProblemFileError(title, reader.problems)
    return problem


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hundreds of thousands of objects are made, none is garbage, and looking for it would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # They count as old then: the young are gone through far more often.
        gc.freeze()
        gc.unfreeze()
        if enabled:
            gc.enable()


def _problem(reader: ProblemReader, raw: Any, seed: int | None) -> Problem | None:
    if not isinstance(raw, dict):
        reader.refuse("", f"expected keys with values, got {shown(raw)}", "begin with nodes:, or with generate:")
        return None
    top = reader.checked(TopEntry, raw, "")
    problem = _parts(reader, raw, seed)
    if problem is None:
        return None
    problem = replace(
        problem,
        pinned=_pinned(reader, raw.get("pinned")),
        current=_current(reader, raw.get("placement")),
        migration_cost=top.migration_cost if top else 0.0,
    )
    problem = workloads.inputs_first(problem)
    _validate(reader, problem)
    return problem


def _parts(reader: ProblemReader, raw: Mapping[str, Any], seed: int | None) -> Problem | None:
    section = reader.entries(raw.get("generate"), "generate", "generate: {workload: zhou}")
    generate = reader.checked(_GenerateEntry, section, "generate")
    if generate is None:
        generate = _GenerateEntry(topology=section.get("topology"), workload=section.get("workload"))
    _refuse_both(reader, raw, "topology", generate.topology, ("nodes", "network"))
    _refuse_both(reader, raw, "workload", generate.workload, ("streams", "queries", "fragments", "costs"))
    seed = generate.seed if seed is None else seed
    found = len(reader.problems)
    cluster: Cluster | None = None
    if generate.topology is not None:
        cluster = _generated(reader, "topology", generate.topology, TOPOLOGIES, seed, reader.folder)
    elif generate.workload is None or raw.get("nodes") is not None:
        cluster = clusters.read(reader, raw.get("nodes"), raw.get("network"))
    if generate.workload is not None:
        # Without the cluster that was meant, the workload would be another one.
        usable = None if len(reader.problems) > found else cluster
        problem: Problem | None = _generated(reader, "workload", generate.workload, WORKLOADS, seed, usable)
        return problem
    return Problem(cluster or Cluster(()), *workloads.read(reader, raw, cluster or Cluster(())))


def _refuse_both(
    reader: ProblemReader, raw: Mapping[str, Any], key: str, generated: Any, sections: tuple[str, ...]
) -> None:
    for section in sections if generated is not None else ():
        if raw.get(section) is not None:
            reader.refuse(section, f"is generated: generate.{key} makes it", "remove one of the two")


def _generated(
    reader: ProblemReader,
    key: str,
    section: Any,
    known: Mapping[str, GeneratedTopology] | Mapping[str, GeneratedWorkload],
    seed: int,
    basis: Path | Cluster | None,
) -> Any:
    where = f"generate.{key}"
    given = {"type": section} if isinstance(section, str) else dict(reader.entries(section, where, f"{key}: zhou"))
    kind = given.pop("type", None)
    if kind is None:
        reader.refuse(f"{where}.type", "is missing", f"one of: {', '.join(known)}")
        return None
    if kind not in known:
        reader.refuse(f"{where}.type", f"{shown(kind)} is not a known {key}", meant(str(kind), known))
        return None
    parameters = reader.checked(known[kind].parameters, given, where)
    if parameters is None:
        return None
    try:
        return known[kind].make(parameters, seed, basis)  # type: ignore[arg-type]
    except ValueError as error:
        reader.refuse(where, str(error))
        return None


def _pinned(reader: ProblemReader, section: Any) -> dict[str, str]:
    table = reader.table(section, "pinned", tables.PLACES)
    if table is not None:
        return dict(table.rows())
    pinned: dict[str, str] = {}
    for fragment, node in reader.entries(section, "pinned", "pinned: {q1.1: n1}").items():
        where = f"pinned.{fragment}"
        reader.put(("pinned", fragment), where)
        if isinstance(node, str):
            pinned[fragment] = node
        else:
            reader.refuse(where, f"expected the name of a node, got {shown(node)}", f"as in {fragment}: n1")
    return pinned


def _current(reader: ProblemReader, section: Any) -> Placement | None:
    if section is None:
        return None
    table = reader.table(section, "current", tables.PLACES)
    nodes: dict[str, tuple[str, ...]] = {}
    if table is not None:
        for fragment, node in table.rows():
            nodes[fragment] = (*nodes.get(fragment, ()), node)
        return Placement(nodes)
    for fragment, value in reader.entries(section, "placement", "placement: {q1.1: n1}").items():
        where = f"placement.{fragment}"
        reader.put(("current", fragment), where)
        places = [value] if isinstance(value, str) else value
        if isinstance(places, list) and places and all(isinstance(node, str) for node in places):
            nodes[fragment] = tuple(places)
        else:
            hint = f"as in {fragment}: n1, or {fragment}: [n1, n2]"
            reader.refuse(where, f"expected the name of a node or several, got {shown(value)}", hint)
    return Placement(nodes)


# --- what must hold across the sections ------------------------------------------------------------------------------


def _validate(reader: ProblemReader, problem: Problem) -> None:
    if reader.lacks_a_table or not problem.cluster.nodes or not problem.streams:
        return  # whatever is missing there would be missed everywhere else
    violations = validate(problem)
    if any(violation.kind == "name" for violation in violations):  # what follows from that is not worth reporting
        violations = [v for v in violations if v.kind not in ("contradiction", "cycle")]
    for violation in violations:
        kind, name = _thing(violation.where, problem)
        if (kind, name) not in reader.broken:
            reader.report(kind, name, violation.text, _hint(violation, problem))


def _thing(where: str, problem: Problem) -> tuple[str, str]:
    """What `validate` speaks of: "stream bids" is the stream bids."""
    kind, _, name = where.partition(" ")
    if kind == "operators":
        return "queries", ""
    if name.startswith("or operator "):
        name = name.removeprefix("or operator ")
        kind = "operator" if name in problem.operator else "stream"
    return kind, name


def _hint(violation: Violation, problem: Problem) -> str:
    known: dict[str, list[str]] = {
        "unknown node": [node.name for node in problem.cluster.nodes],
        "unknown stream": list(problem.stream),
        "unknown input": [*problem.stream, *problem.operator],
        "unknown fragment": list(problem.fragment),
    }
    if violation.kind in known:
        names = known[violation.kind]
        return f"known: {', '.join(names[:10])}" + (f", ... ({len(names):,} in all)" if len(names) > 10 else "")
    return {
        "name": "rename all but one",
        "cycle": "a query is a tree: remove one of the inputs",
        "connection": "split it into fragments",
        "empty": "add some, or remove it",
        "contradiction": "change one of the two",
    }.get(violation.kind, "")
