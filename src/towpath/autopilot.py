"""What steers a job by its control section: a policy by its name, admission, and nodes that come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from towpath import policies
from towpath.cluster import Cluster, Node, Property
from towpath.control.admission import Room
from towpath.control.elastic import Elastic
from towpath.control.engine import Engine
from towpath.control.limits import Limits
from towpath.control.loop import Loop, LoopSettings, Start
from towpath.control.records import State
from towpath.control.scaling import PREFIX, Bounds
from towpath.job import Job
from towpath.nodes import ConnectNode
from towpath.placement.problem import Placement, Problem
from towpath.runtime.carriers import Runtime
from towpath.runtime.moves import Actors
from towpath.spark.local_nodes import LocalNodes
from towpath.steering import ControlDef, ScalingDef
from towpath.store import Store

Open = Callable[[str, ConnectNode], Runtime]


def policy_of(job: Job, control: ControlDef) -> Start:
    """Starts the policy that a job file names. Raises everything that is wrong with its options now."""
    options = policies.options(control.policy, {**policies.get(control.policy).live, **control.options})

    def start(problem: Problem, placement: Placement) -> Actors:
        return policies.start(control.policy, problem, placement, options)

    described = [Node(name, float(node.cores), properties=node.properties) for name, node in job.nodes.items()]
    if (scaling := control.scaling) is not None:
        described.append(Node(f"{PREFIX}1", float(scaling.cores), properties=scaling.properties))
    # What it asks of nodes is refused before anything runs, and not when it first decides.
    start(Problem(Cluster(tuple(described)), (), (), ()), Placement({}))
    return start


def local_nodes(control: ControlDef | None, store: Path, open: Open) -> LocalNodes:
    """What scaling can start; without a scaling section, what is left of one that the job file had before."""
    scaling = control.scaling if control is not None and control.scaling is not None else None
    scaling = scaling or ScalingDef.model_validate({"start": "local", "max": 1})
    return LocalNodes(store, scaling.cores, scaling.memory, open)


def started_before(state: State, nodes: Iterable[str]) -> list[str]:
    """The nodes of scaling, besides those of the job file, that still have something to run."""
    needed = {state.carriers[f.carrier].node for f in state.fragments.values() if not f.status.is_over}
    return sorted(name for name in needed - set(nodes) if name.startswith(PREFIX))


def loop_of(
    job: Job, control: ControlDef, policy: Start, engine: Engine, starter: LocalNodes, own: Iterable[str]
) -> Loop:
    limits = Limits(control.limits.rest_us / 1e6, control.limits.per_node, control.limits.per_minute)
    room = None if control.admission is None else Room(control.admission.most_load)
    settings = LoopSettings(control.every_us / 1e6, control.renew_us / 1e6, limits, control.advise, room)
    cores = {name: node.cores for name, node in job.nodes.items()}
    elastic = None
    if (scaling := control.scaling) is not None:
        bounds = Bounds(scaling.least, scaling.most, scaling.above, scaling.below, scaling.after_us / 1e6)
        elastic = Elastic(engine, starter, bounds, dict.fromkeys(own, starter.cores))
    added = {} if scaling is None else scaling.properties

    def properties(node: str) -> Mapping[str, Property]:
        return job.nodes[node].properties if node in job.nodes else added

    loop = Loop(engine, Store(job.store), job.catalog, cores, policy, settings, elastic, properties)
    engine.admit = loop.admit
    return loop
