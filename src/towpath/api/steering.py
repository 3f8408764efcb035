"""Who places and who moves what a job runs: the planner and the policy that its control section names."""

from __future__ import annotations

from collections.abc import Callable

from towpath import planners, policies
from towpath.config.steering import ControlDef
from towpath.control.act.loop import StartPolicy
from towpath.control.decide.choose_node import JobPlanner, Places
from towpath.control.decide.scaling import PREFIX
from towpath.control.observe.carriers import Capacities
from towpath.control.observe.topology import Topology
from towpath.errors import MissingPackageError, Mistake, ProblemsError, UnknownNameError
from towpath.job import Job
from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import Placement, Problem
from towpath.runtime.actors import Actors


def control_mistakes(job: Job) -> list[Mistake]:
    """Everything that is wrong with the planner and the policy that a job names, and with their options."""
    control = job.control
    if control is None:
        return []
    return [
        *_mistakes("control.planner", "control.planner_options", lambda: places_of(job)),
        *_admission_mistakes(control),
        *_mistakes("control.policy", "control.options", lambda: policy_of(job, control)),
    ]


def _admission_mistakes(control: ControlDef) -> list[Mistake]:
    if control.admission is None or control.admission.by != "planner" or control.planner not in planners.available():
        return []
    if planners.get(control.planner).respects_resources:
        return []
    names = (name for name in planners.available() if name not in planners.lacking())
    able = [name for name in names if planners.get(name).respects_resources]
    message = f"{control.planner} fills nodes beyond what they have, so it would refuse nothing"
    return [Mistake("control.admission.by", message, f"name one of these as control.planner: {', '.join(able)}")]


def _mistakes(name: str, options: str, use: Callable[[], object]) -> list[Mistake]:
    try:
        use()
    except UnknownNameError as error:
        return [Mistake(name, str(error))]
    except MissingPackageError as error:
        return [Mistake(name, error.message, error.hint)]
    except ProblemsError as error:
        return [Mistake(f"{options}.{p.where}" if p.where else options, p.message, p.hint) for p in error.problems]
    return []


def topology_of(job: Job) -> Topology:
    """What a job file says of it; the rest is measured."""
    entries = {name: stream.node for name, stream in job.streams.items() if stream.node is not None}
    return Topology(job.distances, entries)


def places_of(job: Job) -> Places:
    """Asks the planner that a job file names. Raises everything that is wrong with its options now."""
    control = job.control or ControlDef.model_validate({})
    planner = planners.get(control.planner)
    options = planners.options(control.planner, control.planner_options)
    capacities = Capacities(
        {name: node.cores for name, node in job.nodes.items()},
        1 if control.scaling is None else control.scaling.cores,
        {name: node.properties for name, node in job.nodes.items()},
        topology=topology_of(job),
    )
    named = JobPlanner(planner.name, lambda problem: planner.plan(problem, options))
    return Places(job.catalog, named, capacities, job.carriers)


def policy_of(job: Job, control: ControlDef) -> StartPolicy:
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
