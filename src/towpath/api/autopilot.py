"""What goes on beside a job by its control section: the loop with its policy, admission, nodes that come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from towpath.api.steering import places_of
from towpath.config.nodes import ConnectNode
from towpath.config.steering import ControlDef, ScalingDef
from towpath.control.act.elastic import Elastic
from towpath.control.act.engine import Engine
from towpath.control.act.loop import Loop, LoopSettings, StartPolicy
from towpath.control.decide.admission import Room
from towpath.control.decide.limits import Limits
from towpath.control.decide.scaling import PREFIX, Bounds
from towpath.control.observe.topology import Topology
from towpath.control.state.records import State
from towpath.job import Job
from towpath.placement.cluster import Property
from towpath.runtime.carriers import Runtime
from towpath.spark.local_nodes import LocalNodes
from towpath.store.layout import Store

Open = Callable[[str, ConnectNode], Runtime]


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
    job: Job,
    control: ControlDef,
    policy: StartPolicy,
    engine: Engine,
    starter: LocalNodes,
    own: Iterable[str],
    topology: Topology,
) -> Loop:
    limits = Limits(control.limits.rest_us / 1e6, control.limits.per_node, control.limits.per_minute)
    room = None
    if (admission := control.admission) is not None:
        room = Room(admission.most_load, places_of(job).planner if admission.by == "planner" else None)
    settings = LoopSettings(
        control.every_us / 1e6, control.renew_us / 1e6, limits, control.advise, room, control.change_carriers
    )
    cores = {name: node.cores for name, node in job.nodes.items()}
    elastic = None
    if (scaling := control.scaling) is not None:
        bounds = Bounds(scaling.least, scaling.most, scaling.above, scaling.below, scaling.after_us / 1e6)
        elastic = Elastic(engine, starter, bounds, dict.fromkeys(own, starter.cores))
    added = {} if scaling is None else scaling.properties

    def properties(node: str) -> Mapping[str, Property]:
        return job.nodes[node].properties if node in job.nodes else added

    loop = Loop(engine, Store(job.store), job.catalog, cores, policy, settings, elastic, properties, topology)
    engine.admit = loop.admit
    return loop
