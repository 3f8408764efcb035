"""Nodes that do not answer: their carriers go on elsewhere, from their checkpoints. Decides; does nothing.

The node may be dead, or it may only be slow and not know that it is taken for dead. The next epoch of a carrier begins
with its folder getting another name (store.py), so it makes no difference: what the node still writes counts no more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from towpath.control.history import Kind
from towpath.control.ledger import Instruction, Ledger, Publish, StartCarrier
from towpath.control.records import CarrierRecord


class Failover:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def lose(self, node: str, reason: str) -> list[Instruction]:
        """A node does not answer: those that do take its carriers over."""
        ledger = self._ledger
        if node in ledger.lost:
            return []
        ledger.lost.add(node)
        carriers = self._running_on([node])
        for carrier in carriers:
            ledger.publish_whole(carrier.id)  # what the node was told last may never have come to be
        others = self._answering()
        what = (
            f"{len(carriers):,} carriers go on on {', '.join(others)}" if others else "no other node answers; waiting"
        )
        ledger.tell(Kind.NODE_LOST, f"node {node} is lost: {reason}; {what}", nodes=(node, *others))
        return self._take_over(carriers)

    def back(self, node: str) -> list[Instruction]:
        """A node answers again, or for the first time. It has nothing to do, unless nobody else could do it."""
        ledger = self._ledger
        ledger.lost.discard(node)
        ledger.tell(Kind.NODE_JOINED, f"node {node} answers again", nodes=(node,))
        return self._take_over(self._running_on(ledger.lost | {node}))

    def rehome(self, carriers: Iterable[str], elsewhere: Collection[str] = ()) -> None:
        """Before a start: what ran on nodes that the job does not have any more goes to one that it has.

        Who was where a node was before it moved elsewhere may still run what that had.
        """
        for carrier in (self._ledger.state.carriers[name] for name in carriers):
            if carrier.node not in self._ledger.nodes:
                self._hand_over(carrier, self._answering()[0])
            elif carrier.node in elsewhere:
                self._hand_over(carrier, carrier.node)

    def _running_on(self, nodes: Iterable[str]) -> list[CarrierRecord]:
        carriers = (self._ledger.state.carriers[name] for name in self._ledger.runs)
        return [carrier for carrier in carriers if carrier.node in set(nodes)]

    def _answering(self) -> list[str]:
        """Who can take carriers over; one that is being drained only if there is no other."""
        there = [name for name in self._ledger.nodes if name not in self._ledger.lost]
        return [name for name in there if not self._ledger.draining(name)] or there

    def _take_over(self, carriers: Iterable[CarrierRecord]) -> list[Instruction]:
        others = self._answering()
        if not others:
            return []
        found: list[Instruction] = []
        for carrier in carriers:
            self._hand_over(carrier, min(others, key=lambda name: len(self._running_on([name]))))
            self._ledger.begin_run(carrier)
            # The last table may never have reached the node that was to publish it.
            found += [Publish(carrier.id), StartCarrier(carrier.id)]
        return found

    def _hand_over(self, carrier: CarrierRecord, node: str) -> None:
        source, carrier.node = carrier.node, node
        carrier.epoch += 1
        self._ledger.note(carrier)
        text = f"carrier {carrier.id} goes on on {node} from its checkpoint, in epoch {carrier.epoch}"
        self._ledger.tell(Kind.CARRIER_RESTARTED, text, nodes=(source, node))
