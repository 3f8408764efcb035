"""Nodes that do not answer: their carriers go on elsewhere, from their checkpoints. Decides; does nothing.

The node may be dead, or it may only be slow and not know that it is taken for dead. The next epoch of a carrier begins
with its folder getting another name (store/layout.py), so it makes no difference: what the node still writes counts no
more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from towpath.control.decide.choose_node import NodeChoice, Places
from towpath.control.observe.carriers import Wanted
from towpath.control.state.controller_state import ControllerState, Instruction, PublishTable, StartCarrier
from towpath.control.state.history import EventKind
from towpath.control.state.records import CarrierRecord


class Failover:
    def __init__(self, known: ControllerState, places: Places) -> None:
        self._known = known
        self._places = places

    def lose(self, node: str, reason: str) -> list[Instruction]:
        """A node does not answer: those that do take its carriers over."""
        known = self._known
        if node in known.lost:
            return []
        known.lost.add(node)
        carriers = self._running_on([node])
        for carrier in carriers:
            known.publish_whole(carrier.id)  # what the node was asked for last may never have come to be
        others = self._answering()
        what = (
            f"{len(carriers):,} carriers go on on {', '.join(others)}" if others else "no other node answers; waiting"
        )
        known.add_history(EventKind.NODE_LOST, f"node {node} is lost: {reason}; {what}", nodes=(node, *others))
        return self._take_over(carriers)

    def back(self, node: str) -> list[Instruction]:
        """A node answers again, or for the first time. It has nothing to do, unless nobody else could do it."""
        known = self._known
        known.lost.discard(node)
        known.add_history(EventKind.NODE_JOINED, f"node {node} answers again", nodes=(node,))
        return self._take_over(self._running_on(known.lost | {node}))

    def rehome(self, carriers: Iterable[str], elsewhere: Collection[str] = ()) -> None:
        """Before a start: what ran on nodes that the job does not have any more goes to one that it has.

        Who was where a node was before it moved elsewhere may still run what that had.
        """
        all_ = [self._known.state.carriers[name] for name in carriers]
        homeless = [carrier for carrier in all_ if carrier.node not in self._known.nodes]
        chosen = self._choose(homeless, self._answering())
        for carrier in all_:
            if carrier.id in chosen:
                self._hand_over(carrier, chosen[carrier.id])
            elif carrier.node in elsewhere:
                self._hand_over(carrier, NodeChoice((carrier.node,), "the node is at another address now"))

    def _running_on(self, nodes: Iterable[str]) -> list[CarrierRecord]:
        carriers = (self._known.state.carriers[name] for name in self._known.runs)
        return [carrier for carrier in carriers if carrier.node in set(nodes)]

    def _answering(self) -> list[str]:
        """Who can take carriers over; one that is being drained only if there is no other."""
        there = [name for name in self._known.nodes if name not in self._known.lost]
        return [name for name in there if not self._known.draining(name)] or there

    def _choose(self, carriers: Sequence[CarrierRecord], nodes: Sequence[str]) -> Mapping[str, NodeChoice]:
        if not carriers:
            return {}
        sizes = {c.id: len(self._known.present.get(c.id, {})) for c in carriers}
        wanted = [Wanted(c.id, c.template.family, sizes[c.id], carrier=c.id) for c in carriers]
        return self._places.choose(self._known, nodes, wanted)

    def _take_over(self, carriers: Sequence[CarrierRecord]) -> list[Instruction]:
        others = self._answering()
        if not others:
            return []
        found: list[Instruction] = []
        chosen = self._choose(carriers, others)
        for carrier in carriers:
            self._hand_over(carrier, chosen[carrier.id])
            self._known.begin_run(carrier)
            # The last table may never have reached the node that was to publish it.
            found += [PublishTable(carrier.id), StartCarrier(carrier.id)]
        return found

    def _hand_over(self, carrier: CarrierRecord, choice: NodeChoice) -> None:
        source, carrier.node = carrier.node, choice.nodes[0]
        carrier.epoch += 1
        self._known.note(carrier)
        text = f"carrier {carrier.id} goes on on {carrier.node} from its checkpoint, in epoch {carrier.epoch}"
        self._known.add_history(
            EventKind.CARRIER_RESTARTED,
            f"{text}: {choice.reason}" if choice.reason else text,
            nodes=(source, carrier.node),
        )
