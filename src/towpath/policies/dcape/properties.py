"""Processors, query plans, operators and fragments as property and value: new properties need no new code (Table 5.1).

What is known beforehand and what is reported at run time stand side by side in the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from towpath.placement.cluster import Node, Property
from towpath.placement.flows import results
from towpath.placement.problem import Operator, Problem

PropertyKind = Literal["processor", "plan", "operator", "fragment"]
Description = dict[str, Property]


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One property with a new value: the increments that are sent at run time."""

    kind: PropertyKind
    subject: str
    property: str
    value: Property


@dataclass
class Descriptions:
    processors: dict[str, Description] = field(default_factory=dict)
    plans: dict[str, Description] = field(default_factory=dict)
    operators: dict[str, Description] = field(default_factory=dict)
    fragments: dict[str, Description] = field(default_factory=dict)

    def apply(self, change: PropertyChange) -> None:
        tables = {
            "processor": self.processors,
            "plan": self.plans,
            "operator": self.operators,
            "fragment": self.fragments,
        }
        tables[change.kind].setdefault(change.subject, {})[change.property] = change.value

    def processor(self, name: str, property: str) -> float:
        """A number; 0 as long as nobody has reported it."""
        return _number(self.processors.get(name, {}).get(property, 0.0))

    def operator(self, name: str, property: str) -> float:
        return _number(self.operators.get(name, {}).get(property, 0.0))

    def fragment(self, name: str, property: str) -> float:
        return _number(self.fragments.get(name, {}).get(property, 0.0))


def _number(value: Property) -> float:
    return 0.0 if isinstance(value, str) else float(value)


def describe(problem: Problem) -> Descriptions:
    roots = results(problem)
    return Descriptions(
        {node.name: of_node(node) for node in problem.cluster.nodes},
        {query.name: of_plan(problem, query.name, len(roots[query.name])) for query in problem.queries},
        {operator.name: of_operator(operator) for operator in problem.operators()},
    )


def of_node(node: Node) -> Description:
    known: Description = {
        "cpu": node.cpu,
        "capacity": node.memory,
        "bandwidth_in": node.bandwidth_in,
        "bandwidth_out": node.bandwidth_out,
    }
    return {**known, **node.properties}


def of_plan(problem: Problem, query: str, outputs: int) -> Description:
    operators = [o for name in problem.query[query].fragments for o in problem.fragment[name].operators]
    streams = {i for o in operators for i in o.inputs if i in problem.stream}
    return {
        "operators": len(operators),
        "depth": _depth({o.name: o for o in operators}),
        "inputs": len(streams),
        "outputs": outputs,
    }


def of_operator(operator: Operator) -> Description:
    return {"type": operator.kind, "children": len(operator.inputs)}


def _depth(operators: Mapping[str, Operator]) -> int:
    depth: dict[str, int] = {}
    for name, operator in operators.items():  # inputs come first
        depth[name] = 1 + max((depth.get(i, 0) for i in operator.inputs), default=0)
    return max(depth.values(), default=0)


def has(description: Mapping[str, Property], condition: str) -> bool:
    """Whether a description meets `property=value`."""
    property, _, value = condition.partition("=")
    return property in description and str(description[property]) == value
