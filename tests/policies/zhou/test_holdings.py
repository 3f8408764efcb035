from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.policies.zhou.holdings import HostedFragments
from towpath.policies.zhou.messages import FragmentCard, Handover, Moved, Sighting
from towpath.policies.zhou.workload import OperatorLoads


def card(fragment: str, *neighbours: str, signature: str | None = None, movable: bool = True) -> FragmentCard:
    return FragmentCard(fragment, "home", neighbours, (f"{fragment}.o",), (signature,), movable)


def holdings(node: str, *cards: FragmentCard, **places: str) -> HostedFragments:
    loads = OperatorLoads(alpha=0.5, cpu=1.0)
    for c in cards:
        loads.put(f"{c.fragment}.o", 0.4, 100.0)
    return HostedFragments(node, cards, [Sighting(f, n) for f, n in places.items()], loads)


def test_a_mover_informs_the_new_node_and_the_nodes_of_the_neighbours() -> None:
    h = holdings("n0", card("f", "g", "h", "i", "j"), f="n0", g="n0", h="n1", i="n2", j="n3")
    here = Sighting("f", "n1", 1)
    neighbours = (Sighting("g", "n0"), Sighting("h", "n1"), Sighting("i", "n2"), Sighting("j", "n3"))
    assert h.give("f", "n1") == [
        ("n1", Handover(card("f", "g", "h", "i", "j"), here, neighbours, (0.4,), (100.0,))),
        ("n1", Moved(here, "h")),
        ("n2", Moved(here, "i")),
        ("n3", Moved(here, "j")),
    ]
    assert (h.cards, h.where("f"), h.loads.load("f.o")) == ({}, "n1", 0)


def test_news_for_a_fragment_that_left_follow_it() -> None:
    h = holdings("n0", card("f", "g"), f="n0", g="n2")
    h.give("f", "n1")
    news = Moved(Sighting("g", "n3", 1), "f")
    assert h.hear(news) == [("n1", news)]


def test_news_that_overtake_a_fragment_wait_for_it() -> None:
    h = holdings("n1")
    assert h.hear(Moved(Sighting("g", "n3", 1), "f")) == []
    h.take(Handover(card("f", "g"), Sighting("f", "n1", 1), (Sighting("g", "n2"),), (0.1,), (5.0,)))
    assert h.where("g") == "n3"
    assert [c.load for c in h.candidates()] == [0.1]


def test_older_news_are_not_believed() -> None:
    h = holdings("n0", card("f", "g"), f="n0", g="n2")
    h.hear(Moved(Sighting("g", "n3", 2), "f"))
    h.hear(Moved(Sighting("g", "n1", 1), "f"))
    assert h.where("g") == "n3"


def test_a_shared_operator_counts_as_one_nth() -> None:
    h = holdings("n0", card("f", signature="s"), card("g", signature="s"), card("h"), f="n0", g="n0", h="n0")
    assert {c.fragment: c.load for c in h.candidates()} == pytest.approx({"f": 0.2, "g": 0.2, "h": 0.4})


def test_a_shared_operator_may_be_reported_under_one_of_its_names() -> None:
    h = holdings("n0", card("f", signature="s"), card("g", signature="s"), f="n0", g="n0")
    h.loads.put("g.o", 0.0, 100.0)
    assert {c.fragment: c.load for c in h.candidates()} == pytest.approx({"f": 0.2, "g": 0.2})


def test_candidates_are_the_movable_ones() -> None:
    h = holdings("n0", card("f", "g"), card("h", movable=False), f="n0", g="n7", h="n0")
    (only,) = h.candidates()
    assert (only.fragment, only.native, only.neighbours, only.state_bytes) == ("f", "home", {"n7"}, 100.0)


class Channels:
    """Four nodes, a chain of four fragments, and messages between each two nodes in their order."""

    def __init__(self) -> None:
        chain = ["f", "g", "h", "i"]
        pairs = list(pairwise(chain))
        near = {f: [*(a for a, b in pairs if b == f), *(b for a, b in pairs if a == f)] for f in chain}
        self.near = near
        self.nodes = {
            node: holdings(
                node, card(f, *near[f]), **{f: node}, **{other: f"n{chain.index(other)}" for other in near[f]}
            )
            for node, f in zip(("n0", "n1", "n2", "n3"), chain, strict=True)
        }
        self.queues: dict[tuple[str, str], deque[Handover | Moved]] = {}

    def send(self, sender: str, sent: list[tuple[str, Handover | Moved]]) -> None:
        for to, message in sent:
            assert to != sender
            self.queues.setdefault((sender, to), deque()).append(message)

    def give(self, fragment: str, target: str) -> None:
        for name, node in self.nodes.items():
            if fragment in node.cards and name != target:
                self.send(name, node.give(fragment, target))
                return

    def deliver(self, number: int) -> None:
        waiting = [pair for pair, queue in sorted(self.queues.items()) if queue]
        if waiting:
            sender, to = waiting[number % len(waiting)]
            message = self.queues[sender, to].popleft()
            if isinstance(message, Handover):
                self.nodes[to].take(message)
            else:
                self.send(to, self.nodes[to].hear(message))


gives = st.tuples(st.sampled_from("fghi"), st.sampled_from(["n0", "n1", "n2", "n3"]))


@given(st.lists(gives | st.integers(0, 20), max_size=60))
def test_when_all_messages_have_arrived_every_node_knows_where_the_neighbours_are(
    steps: list[tuple[str, str] | int],
) -> None:
    world = Channels()
    for step in steps:
        world.deliver(step) if isinstance(step, int) else world.give(*step)
    while any(world.queues.values()):
        world.deliver(0)
    holder = {fragment: name for name, node in world.nodes.items() for fragment in node.cards}
    assert sorted(holder) == list("fghi")
    for fragment, name in holder.items():
        assert {n: world.nodes[name].where(n) for n in world.near[fragment]} == {
            n: holder[n] for n in world.near[fragment]
        }
