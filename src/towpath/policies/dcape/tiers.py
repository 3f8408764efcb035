"""Who manages whom (section 4.2), and what a manager looks like from above: one processor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from towpath.errors import Mistake, PolicyError
from towpath.placement.cluster import Node
from towpath.policies.dcape.properties import Descriptions, PropertyChange
from towpath.runtime.actors import Address

ROOT = "manager"
SUMS = ("cpu", "capacity", "queued", "memory", "bytes_in", "bytes_out")


@dataclass(frozen=True)
class Tier:
    address: Address
    below: tuple[Tier | str, ...]  # managers, or the names of nodes

    def processors(self) -> tuple[Address, ...]:
        return tuple(b.address if isinstance(b, Tier) else b for b in self.below)

    def managers(self, parent: Address | None = None) -> Iterator[tuple[Tier, Address | None]]:
        """It and those below, each with the one above it."""
        yield self, parent
        for below in self.below:
            if isinstance(below, Tier):
                yield from below.managers(self.address)

    def nodes(self) -> dict[str, Address]:
        """Every node below it, with the processor that it is or belongs to."""
        found: dict[str, Address] = {}
        for b in self.below:
            found |= dict.fromkeys(b.nodes(), b.address) if isinstance(b, Tier) else {b: b}
        return found


def tiers(nodes: Sequence[Node], fan_out: int, group_by: str = "") -> Tier:
    """Neighbours in the list of nodes share a manager, in as many tiers as it takes; without fan_out one has all."""
    level: list[Tier | str] = _grouped(nodes, group_by) if group_by else [node.name for node in nodes]
    height = 1 + bool(group_by)
    while 1 < fan_out < len(level):
        groups = [level[n : n + fan_out] for n in range(0, len(level), fan_out)]
        level = [Tier(f"{ROOT}.{height}.{n}", tuple(group)) for n, group in enumerate(groups, start=1)]
        height += 1
    return Tier(ROOT, tuple(level))


def _grouped(nodes: Sequence[Node], property: str) -> list[Tier | str]:
    """A manager for each value of a property."""
    without = [node.name for node in nodes if property not in node.properties]
    if without:
        message = f"{property!r} is no property of {', '.join(without)}"
        raise PolicyError("options of the policy dcape", [Mistake("group_by", message, "every node must have it")])
    groups: dict[str, list[str]] = {}
    for node in nodes:
        groups.setdefault(str(node.properties[property]), []).append(node.name)
    return [Tier(f"{ROOT}.1.{value}", tuple(names)) for value, names in groups.items()]


def aggregated(address: Address, below: Sequence[Address], seen: Descriptions) -> Iterator[PropertyChange]:
    """Sums over the processors below, and their load weighted by what they can do."""
    for name in SUMS:
        yield PropertyChange("processor", address, name, sum(seen.processor(b, name) for b in below))
    cpu = sum(seen.processor(b, "cpu") for b in below)
    busy = sum(seen.processor(b, "load") * seen.processor(b, "cpu") for b in below)
    yield PropertyChange("processor", address, "load", busy / cpu if cpu else 0.0)
