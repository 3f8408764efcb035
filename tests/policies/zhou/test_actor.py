"""One node: what it answers to each event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from towpath.placement.cluster import Node
from towpath.placement.statistics import NodeStatistics, OperatorStatistics, Statistics
from towpath.policies.zhou import Options, actors
from towpath.policies.zhou.actor import NodeActor
from towpath.policies.zhou.messages import (
    Coming,
    Handover,
    LoadRequest,
    Moved,
    NodeWorkload,
    PartnerAnswer,
    PartnerEnd,
    PartnerRequest,
    size,
)
from towpath.runtime.actors import (
    Arrived,
    Measured,
    Move,
    MoveDone,
    MoveFailed,
    NodeJoined,
    NodeLost,
    Note,
    Send,
    Started,
    Wake,
    Woken,
)

from .world import at_home, chains

# n0 has four fragments of 0.2, each with a neighbour on n1, n1, n2 and on n0 itself.
PROBLEM = chains(3, [[(1, 0.1), (0, 0.2)], [(1, 0.1), (0, 0.2)], [(2, 0.1), (0, 0.2)], [(0, 0.2)]])


def actor(node: int = 0, problem=PROBLEM, **options: object) -> NodeActor:  # type: ignore[no-untyped-def]
    made = actors(problem, at_home(problem), Options(**options)).actors[node]  # type: ignore[arg-type]
    assert isinstance(made, NodeActor)
    return made


def measured(a: NodeActor, load: float, at: float = 0.1) -> Measured:
    operators = {o: OperatorStatistics(100.0, 1.0, 0.002) for card in a.holdings.cards.values() for o in card.operators}
    return Measured(at, Statistics(at, 0.1, {}, operators, {a.address: NodeStatistics(load)}))


def sent(instructions: Sequence[object]) -> list[tuple[str, object]]:
    return [(i.to, i.message) for i in instructions if isinstance(i, Send)]


def with_partners(a: NodeActor, **workloads: float) -> None:
    """Others asked to be partners and announced their workloads."""
    for node, workload in workloads.items():
        a.handle(Arrived(0.0, node, PartnerRequest(1)))
        a.handle(Arrived(0.0, node, NodeWorkload(workload)))


def test_start() -> None:
    first, refresh, *requests = actor(max1=2).handle(Started(5.0))
    assert isinstance(first, Wake)
    assert 5.0 <= first.at <= 6.0
    assert first.name == "round"
    assert refresh == Wake(15.0, "refresh")
    assert sent(requests) == [("n1", PartnerRequest(1)), ("n2", PartnerRequest(2))]


def test_a_new_partner_hears_the_workload() -> None:
    a = actor()
    a.handle(measured(a, 0.8))
    assert sent(a.handle(Arrived(0.2, "n2", PartnerRequest(4)))) == [
        ("n2", PartnerAnswer(4, True)),
        ("n2", NodeWorkload(0.8)),
    ]


def test_a_changed_workload_goes_to_all_partners() -> None:
    a = actor()
    with_partners(a, n1=0.5, n2=0.5)
    assert sent(a.handle(measured(a, 0.8))) == [("n1", NodeWorkload(0.8)), ("n2", NodeWorkload(0.8))]
    assert sent(a.handle(measured(a, 0.9))) == []


def test_a_round_asks_the_heaviest_partner() -> None:
    a = actor()
    with_partners(a, n1=0.5, n2=0.75)
    a.handle(measured(a, 0.25))
    assert a.handle(Woken(1.0, "round")) == [Wake(2.0, "round"), Send("n2", LoadRequest(0.25), size(LoadRequest(0.25)))]


def test_a_partner_that_has_not_announced_its_workload_does_not_count() -> None:
    a = actor()
    a.handle(Arrived(0.0, "n1", PartnerRequest(1)))
    a.handle(measured(a, 0.25))
    assert a.handle(Woken(1.0, "round")) == [Wake(2.0, "round")]


def serve(a: NodeActor, *requests: tuple[str, float], at: float = 1.05) -> list[object]:
    a.handle(measured(a, 0.8))
    a.handle(Woken(1.0, "round"))
    for node, amount in requests:
        a.handle(Arrived(at, node, LoadRequest(amount)))
    return list(a.handle(measured(a, 0.8, 1.1)))


def moves(instructions: Sequence[object]) -> list[tuple[str, str, str]]:
    return [(i.fragment, i.target, i.reason) for i in instructions if isinstance(i, Move)]


def test_a_request_is_answered_with_moves_in_the_order_of_the_categories() -> None:
    """All are native; q2's neighbour is at the receiver, the others' elsewhere."""
    coming = Coming("q2.f1", 0.2)
    assert serve(actor(), ("n2", 0.2)) == [
        Send("n2", coming, size(coming)),
        Move("q2.f1", "n0", "n2", "n2 asked for 0.200"),
    ]


def test_several_requests_the_largest_first_until_half_of_the_load_is_gone() -> None:
    a = actor()
    assert moves(serve(a, ("n2", 0.15), ("n1", 0.2))) == [
        ("q0.f1", "n1", "n1 asked for 0.200"),
        ("q2.f1", "n2", "n2 asked for 0.150"),
    ]
    assert a.handle(measured(a, 0.8, 1.2)) == []


def test_what_could_not_be_given_waits_for_the_next_round() -> None:
    a = actor()
    assert [fragment for fragment, _, _ in moves(serve(a, ("n1", 0.9)))] == ["q0.f1", "q1.f1"]
    a.handle(Woken(2.0, "round"))  # with 0.4 that do not leave yet
    assert moves(a.handle(measured(a, 0.8, 2.01))) == [("q2.f1", "n1", "n1 asked for 0.500")]


def test_a_request_expires_with_a_reason() -> None:
    a = actor()
    serve(a, ("n1", 0.9))
    (note,) = a.handle(measured(a, 0.8, 2.2))
    assert note == Note("n0 gives n1 none of 0.500: more than half of its load 0.800 would have gone in this round")


def test_a_request_is_satisfied_by_a_fragment_that_is_larger() -> None:
    """ "Until the request is satisfied": the first in order goes, and only that one."""
    assert moves(serve(actor(), ("n1", 0.05))) == [("q0.f1", "n1", "n1 asked for 0.050")]


def test_nothing_may_move() -> None:
    pinned = replace(PROBLEM, pinned=dict.fromkeys((f"q{n}.f{int(n < 3)}" for n in range(4)), "n0"))
    answers = serve(actor(problem=pinned), ("n1", 0.05))
    assert answers == [Note("n0 gives n1 none of 0.050: nothing here may move")]


def test_a_pinned_fragment_stays() -> None:
    pinned = replace(PROBLEM, pinned={"q2.f1": "n0", "q3.f0": "n0"})
    moved = serve(actor(problem=pinned), ("n2", 0.45))
    assert [m.fragment for m in moved if isinstance(m, Move)] == ["q0.f1", "q1.f1"]


def test_a_move_that_is_done_is_reported() -> None:
    a, other = actor(), actor(2)
    for to, message in sent(serve(a, ("n2", 0.2))):
        assert to == "n2"
        other.handle(Arrived(1.2, "n0", message))
    assert (round(a.load.rho, 3), round(other.load.rho, 3)) == (0.6, 0.2)
    answers = sent(a.handle(MoveDone(1.3, "q2.f1", "n0", "n2", 0.1)))
    assert [(to, type(message)) for to, message in answers] == [("n2", Handover), ("n2", Moved)]
    assert [other.handle(Arrived(1.4, "n0", message)) for _, message in answers] == [[], []]
    assert (round(a.load.rho, 3), round(other.load.rho, 3)) == (0.6, 0.2)
    assert "q2.f1" in other.holdings.cards
    assert "q2.f1" not in a.holdings.cards


def test_a_move_that_failed_is_undone() -> None:
    a = actor()
    serve(a, ("n2", 0.2))
    never = Coming("q2.f1", 0.0)
    assert a.handle(MoveFailed(1.2, "q2.f1", "n0", "n2", "n2 is down")) == [
        Send("n2", never, size(never)),
        Note("q2.f1 stays on n0, did not go to n2: n2 is down"),
    ]
    assert round(a.load.rho, 3) == 0.8
    a.handle(Woken(2.0, "round"))
    a.handle(Arrived(2.0, "n2", LoadRequest(0.2)))
    assert moves(a.handle(measured(a, 0.8, 2.1))) == [("q2.f1", "n2", "n2 asked for 0.200")]


def test_probing_goes_on_until_one_accepts_or_the_limit_is_reached() -> None:
    wide = chains(6, [[(0, 0.9)]])
    a = actor(problem=wide, max1=2, maximum_try=0, probe_limit=3)
    a.handle(Started(0.0))
    a.handle(measured(a, 0.95))
    probed: list[str] = []
    now = list(a.handle(Woken(1.0, "round")))
    while probes := sent(now):
        ((node, message),) = probes
        assert isinstance(message, PartnerRequest)
        assert message.probe == 0.95
        probed.append(node)
        now = list(a.handle(Arrived(1.0, node, PartnerAnswer(message.serial, False))))
    assert len(probed) == 3
    ((node, message),) = sent(a.handle(Woken(2.0, "round")))
    assert isinstance(message, PartnerRequest)
    assert sent(a.handle(Arrived(2.0, node, PartnerAnswer(message.serial, True)))) == [(node, NodeWorkload(0.95))]
    assert a.partners.all == [node]


def test_nobody_probes_while_one_partner_has_room() -> None:
    a = actor(problem=chains(6, [[(0, 0.9)]]))
    with_partners(a, n1=0.95, n2=0.3)
    a.handle(measured(a, 0.95))
    assert sent(a.handle(Woken(1.0, "round"))) == []


def test_a_lost_partner_is_forgotten_and_a_new_node_can_be_asked() -> None:
    a = actor(max1=1, maximum_try=1)
    assert sent(a.handle(Started(0.0))) == [("n1", PartnerRequest(1))]
    assert sent(a.handle(NodeJoined(0.0, Node("n9")))) == []
    assert sent(a.handle(NodeLost(0.0, "n1"))) == [("n2", PartnerRequest(2))]
    assert sent(a.handle(NodeLost(0.0, "n2"))) == [("n9", PartnerRequest(3))]


def test_a_node_that_is_back_begins_again_and_never_asks_itself() -> None:
    a = actor(max1=2)
    a.handle(Started(0.0))
    with_partners(a, n1=0.5, n2=0.5)
    first, refresh, *requests = a.handle(NodeJoined(7.0, Node("n0")))
    assert isinstance(first, Wake) and first.name == "round" and 7.0 <= first.at <= 8.0
    assert refresh == Wake(17.0, "refresh")
    assert sent(requests) == [("n1", PartnerRequest(3)), ("n2", PartnerRequest(4))]


def test_an_end_forgets_what_the_partner_announced_and_asked() -> None:
    a = actor(max1=0, max2=2)
    with_partners(a, n1=0.9, n2=0.1)
    a.handle(Arrived(0.5, "n2", LoadRequest(0.2)))
    a.handle(Arrived(0.5, "n2", PartnerEnd()))
    assert a.handle(measured(a, 0.8)) == [Send("n1", NodeWorkload(0.8), size(NodeWorkload(0.8)))]


def test_a_message_it_does_not_know_is_noted() -> None:
    assert actor().handle(Arrived(0.0, "n1", "hello")) == [Note("n0 cannot read a str of n1")]
