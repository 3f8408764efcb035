"""The manager as events in, instructions out."""

from __future__ import annotations

from plans import drawn
from policies.dcape.world import World
from towpath.placement.problem import Placement
from towpath.policies.dcape import Options
from towpath.policies.dcape.messages import Configure, LoadReport, WorkRequest, WorkRequests
from towpath.runtime.actors import Move

PLAN = drawn("a(s) b(a) c(t) d(c) j(b d) k(j)", nodes=3)
SPLIT = Placement.single({"a": "n1", "b": "n2", "c": "n1", "d": "n1", "j": "n3", "k": "n3"})
MEMORY = Options(cost="tuples_in_memory", every=60.0, percent_difference=0.0)


def world(options: Options = MEMORY) -> World:
    made = World(PLAN, SPLIT, options)
    made.wait(6)  # configured
    return made


def report(made: World, queued: float) -> None:
    made.measure("n1", a=10, c=10, d=10)
    made.measure("n2", b=10, queued=queued)
    made.measure("n3", j=20, k=40)


def test_it_configures_everyone_and_lays_the_connections() -> None:
    made = world()
    configured = [send.to for _, send in made.sent if isinstance(send.message, Configure)]
    assert configured == ["n1", "n2", "n3"]
    (requests,) = [s.message.requests for _, s in made.sent if s.to == "n2" and isinstance(s.message, WorkRequests)]
    assert requests == (
        WorkRequest("activate", "b"),
        WorkRequest("send_data", "b", "j", "n3"),
        WorkRequest("receive_data", "b", "a", "n1"),
    )
    assert made.agent("n2").connections == {("send_data", "b", "j", "n3"), ("receive_data", "b", "a", "n1")}


def test_only_what_changed_is_reported() -> None:
    made = world()
    made.measure("n2", b=10.0, queued=5.0)
    made.measure("n2", b=10.0, queued=5.0)
    made.measure("n2", b=10.3, queued=9.0)  # 3% more is within the tolerance
    reports = [send for _, send in made.sent if isinstance(send.message, LoadReport)]
    assert [[(c.subject, c.property) for c in send.message.changes] for send in reports[1:]] == [[("n2", "queued")]]
    assert [send.size for send in reports] == [16 + 12 * 10, 16 + 12]


def test_a_processor_that_gets_worse_gives_away_what_saves_connections() -> None:
    made = world()
    for queued in (0.0, 100.0, 100.0):
        report(made, queued)
        made.wait(60)
    # n2 has 100 of 1,000 tuples, then 200 of 1,100. n1 has the child of b and n3 its parent, so either saves one
    # connection; n3 has fewer fragments.
    move = Move("b", "n2", "n3", "n2 is 82% worse than when it was last given something")
    assert made.moves == [("manager", move)]
    assert made.manager().distribution.table["b"] == "n3"
    assert made.agent("n2").connections == set()
    assert made.agent("n3").connections == {("receive_data", "b", "a", "n1"), ("receive_data", "j", "d", "n1")}
    assert ("send_data", "a", "b", "n3") in made.agent("n1").connections
    assert ("send_data", "a", "b", "n2") not in made.agent("n1").connections
    assert made.connections_are_as_needed()


def test_nothing_moves_while_costs_stay_as_they_were() -> None:
    made = world()
    for _ in range(5):
        report(made, 100.0)
        made.wait(60)
    assert made.moves == [] and made.notes == []


def test_the_steps_of_a_move_come_in_order() -> None:
    made = world()
    report(made, 0.0)
    made.wait(60)
    report(made, 1000.0)
    before = len(made.sent)
    made.wait(60)
    bundles = [(s.to, s.message.requests) for _, s in made.sent[before:] if isinstance(s.message, WorkRequests)]
    assert bundles == [
        ("n3", (WorkRequest("prepare", "b"),)),
        ("n2", (WorkRequest("release", "b"),)),
        ("n3", (WorkRequest("receive_data", "b", "a", "n1"),)),
        ("n1", (WorkRequest("send_data", "a", "b", "n3"),)),
        ("n3", (WorkRequest("activate", "b"), WorkRequest("stop_receive", "j", "b", "n2"))),
        ("n2", (WorkRequest("deactivate", "b"),)),
        ("n1", (WorkRequest("stop_send", "a", "b", "n2"),)),
    ]
    # The world is asked to move it when all know where it will be.
    assert len(made.moves) == 1


def test_a_move_that_the_world_refuses_is_noted_and_undone() -> None:
    made = world()
    made.refuse["b"] = "it is already moving"
    report(made, 0.0)
    made.wait(60)
    report(made, 1000.0)
    made.wait(60)
    assert made.notes == ["b stays on n2 instead of going to n3: it is already moving"]
    assert made.manager().distribution.table["b"] == "n2"
    for node in ("n1", "n2", "n3"):
        assert made.agent(node).connections == world().agent(node).connections


def test_who_does_not_answer_the_configuration_is_not_used() -> None:
    made = World(PLAN, Placement.single(dict.fromkeys(SPLIT.nodes, "n1")), MEMORY, mute={"n3"})
    made.wait(6)
    assert made.notes == ["n3 is not used: it did not answer within 5 s"]
    assert list(made.manager().distribution.alive) == ["n1", "n2"]


def test_one_that_falls_silent_later_stops_the_move() -> None:
    made = world()
    report(made, 0.0)
    made.wait(60)
    report(made, 1000.0)
    made.mute.add("n1")
    made.wait(60)
    made.wait(6)
    assert made.moves == []
    assert made.notes == ["b stays on n2 instead of going to n3: n1 did not answer within 5 s"]


def test_nothing_waits_for_one_that_is_gone() -> None:
    made = world()
    made.mute.add("n2")
    made.lose("n3")  # j and k are to go to n2, which has not answered yet
    made.lose("n2")
    assert made.notes == ["j stays on n3 instead of going to n2: n2 is gone"]
    assert set(made.where.values()) == set(made.manager().distribution.table.values()) == {"n1"}


def test_what_a_lost_processor_had_goes_where_the_fewest_operators_are() -> None:
    made = world()
    made.lose("n3")
    assert [(m.fragment, m.source, m.target) for _, m in made.moves] == [("j", "n3", "n2"), ("k", "n3", "n2")]
    assert made.moves[0][1].reason == "n3 is gone"
    assert set(made.manager().distribution.table.values()) == {"n1", "n2"}
