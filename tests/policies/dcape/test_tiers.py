"""A manager is to its parent what a node is to it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from plans import drawn
from policies.dcape.world import World
from towpath.errors import PolicyError
from towpath.placement.cluster import Node
from towpath.placement.problem import Placement
from towpath.policies.dcape import Options, reported
from towpath.policies.dcape.messages import LoadReport, Refused, WorkRequest, WorkRequests
from towpath.policies.dcape.tiers import Tier, tiers
from towpath.runtime.actors import Actors, Arrived

PLAN = drawn("a(s) b(a) c(t) d(c) j(b d) k(j)", nodes=4)
PLACED = Placement.single({"a": "n1", "b": "n2", "c": "n1", "d": "n1", "j": "n3", "k": "n4"})
LEFT, RIGHT = "manager.1.1", "manager.1.2"
OPTIONS = Options(
    cost="tuples_in_memory", redistribution="balance", percent_difference=0.0, fan_out=2, eligible_operators=("b",)
)


def world(options: Options = OPTIONS) -> World:
    made = World(PLAN, PLACED, options)
    made.wait(6)
    return made


def reports(made: World, sender: str) -> list[dict[tuple[str, str], object]]:
    """What one has reported, report by report."""
    sent = [s.message for who, s in made.sent if who == sender and isinstance(s.message, LoadReport)]
    return [{(c.subject, c.property): c.value for c in report.changes} for report in sent]


# --- who manages whom ---


@pytest.mark.parametrize(
    ("nodes", "fan_out", "height", "managers"), [(5, 0, 1, 1), (4, 2, 2, 3), (8, 2, 3, 7), (9, 3, 2, 4), (2, 2, 1, 1)]
)
def test_as_many_tiers_as_it_takes(nodes: int, fan_out: int, height: int, managers: int) -> None:
    names = [f"n{n}" for n in range(nodes)]
    root = tiers([Node(name) for name in names], fan_out)

    def depth(tier: Tier | str) -> int:
        return 0 if isinstance(tier, str) else 1 + max(map(depth, tier.below))

    assert (depth(root), len(list(root.managers()))) == (height, managers)
    assert list(root.nodes()) == names


def test_nodes_of_one_site_share_a_manager() -> None:
    nodes = [Node(f"n{n}", properties={"site": site}) for n, site in enumerate(("oslo", "rome", "oslo"))]
    assert tiers(nodes, 0, "site").below == (Tier("manager.1.oslo", ("n0", "n2")), Tier("manager.1.rome", ("n1",)))
    with pytest.raises(PolicyError, match="group_by: 'site' is no property of n3"):
        tiers([*nodes, Node("n3")], 0, "site")


def test_a_parent_sees_its_children_as_processors() -> None:
    made = world()
    assert made.manager().distribution.table == {"a": LEFT, "b": LEFT, "c": LEFT, "d": LEFT, "j": RIGHT, "k": RIGHT}
    assert made.manager(RIGHT).distribution.table == {"j": "n3", "k": "n4"}
    assert made.connections_are_as_needed()


# --- what is reported upwards ---


def test_statistics_go_up_in_sum() -> None:
    made = world()
    made.measure("n1", a=10, c=10, d=10, queued=30, load=0.2)
    made.measure("n2", b=10, queued=12, load=0.6)
    made.wait(10)
    (reported,) = reports(made, LEFT)
    assert reported[LEFT, "queued"] == 42
    assert reported[LEFT, "load"] == pytest.approx(0.4)
    assert reported[LEFT, "cpu"] == 2
    assert reported["b", "cost"] == 100  # ten tuples a rate; only b may move
    assert reported[LEFT, "others"] == 300
    assert not any(property in ("rate", "state_tuples") for _, property in reported)


def test_what_a_manager_reports_does_not_grow_with_what_it_has() -> None:
    made = world(replace(OPTIONS, eligible_operators=(), offers=2))
    made.measure("n1", a=10, c=20, d=30)
    made.measure("n2", b=25)
    made.wait(10)
    assert {subject for subject, property in reports(made, LEFT)[0] if property == "cost"} == {"d", "b"}
    made.measure("n1", a=50, c=20, d=30)
    made.wait(10)
    last = reports(made, LEFT)[-1]
    assert (last["a", "cost"], last["b", "cost"], last[LEFT, "others"]) == (500, 0, 450)  # b is among the others now


# --- moves ---


def overloaded(made: World) -> None:
    made.measure("n1", a=1, c=1, d=1)
    made.measure("n2", b=10, queued=300)
    made.measure("n3", j=1)
    made.measure("n4", k=1)


def test_the_parent_hands_a_fragment_over_and_the_child_places_it() -> None:
    made = world()
    overloaded(made)
    made.wait(59)
    by_parent = [m for asker, m in made.moves if asker == "manager"]
    assert [(m.fragment, m.source, m.target) for m in by_parent] == [("b", "n2", "n3")]  # n3 has j, which reads b
    assert made.where["b"] == "n3"
    assert made.manager().distribution.table["b"] == RIGHT
    assert made.manager(RIGHT).distribution.table == {"j": "n3", "k": "n4", "b": "n3"}
    assert "b" not in made.manager(LEFT).distribution.table
    assert made.connections_are_as_needed()


def test_after_a_move_the_word_of_the_new_one_counts() -> None:
    made = world()
    overloaded(made)
    made.wait(59)
    made.measure("n3", b=10, j=1)
    made.wait(10)
    assert reports(made, RIGHT)[-1]["b", "cost"] == 100
    made.wait(10)
    assert all(("b", "cost") not in report for report in reports(made, LEFT)[1:])


def test_nobody_is_sent_where_it_may_not_run() -> None:
    made = world(replace(OPTIONS, eligible_processors=("n4",)))
    overloaded(made)
    made.wait(59)
    assert made.where["b"] == "n4"  # though n3 would save a connection


def test_neighbours_stay_until_the_move_is_over() -> None:
    made = world()
    right = made.manager(RIGHT).distribution
    made.mute.add("n3")  # it does not say that it is prepared
    overloaded(made)
    made.wait(55)
    assert right.kept == {"j": {"manager": "hold"}} and right.arriving == {"b": "n3"}
    assert made.manager(LEFT).distribution.kept == {"b": {"manager": "release"}, "a": {"manager": "hold"}}
    made.wait(5)
    assert made.notes == [f"b stays on {LEFT} instead of going to {RIGHT}: {RIGHT} did not answer within 5 s"]
    assert right.kept == right.arriving == made.manager(LEFT).distribution.kept == {}


def test_a_child_that_moves_it_itself_says_so() -> None:
    made = world()
    made.mute |= {"manager", "n1"}  # the child decides alone, and waits for n1
    overloaded(made)
    made.wait(75)  # its turn comes after the parent's
    made.deliver(LEFT, Arrived(made.now, "manager", WorkRequests("manager", 7, (WorkRequest("release", "b"),))))
    assert made.sent[-1][1].message == Refused("manager", 7, f"{LEFT} is moving b itself")


@pytest.mark.parametrize(
    ("first", "then", "refused"), [(*pair, "release" in pair) for pair in product(["release", "hold"], repeat=2)]
)
def test_what_one_counts_on_no_other_takes_away(first: str, then: str, refused: bool) -> None:
    made = world()
    for number, (origin, verb) in enumerate([("manager", first), (RIGHT, then)]):
        made.deliver(LEFT, Arrived(made.now, "manager", WorkRequests(origin, number, (WorkRequest(verb, "b"),))))
    answers = [s.message for who, s in made.sent if who == LEFT and s.to == "manager"]
    expected = Refused(RIGHT, 1, f"{LEFT} keeps b for manager")
    assert (expected in answers) == refused


def test_a_group_without_nodes_is_relieved_by_the_others() -> None:
    made = world(replace(OPTIONS, eligible_operators=()))
    overloaded(made)
    made.wait(5)
    made.lose("n3")
    made.lose("n4")
    assert made.moves[-1][1].target == "n4"  # the first time its manager could help itself
    made.wait(10)
    assert {made.where["j"], made.where["k"]} <= {"n1", "n2"}
    assert set(made.manager().distribution.table.values()) == {LEFT}
    assert made.connections_are_as_needed()


def test_managers_who_have_not_heard_anything_yet_are_not_gone() -> None:
    deep = drawn("a(s) b(a) c(t) d(c) j(b d) k(j)", nodes=8)
    made = World(deep, PLACED, replace(OPTIONS, fan_out=2))  # three tiers: the middle one reports before it was asked
    made.wait(25)
    assert reports(made, "manager.2.1")[0]["manager.2.1", "cpu"] == 4
    assert made.moves == [] and made.notes == []


def test_what_was_reported_is_kept_for_after_the_run() -> None:
    made = world()
    made.measure("n2", b=10, queued=300)
    made.wait(10)
    rows = [tuple(row.values()) for row in reported(Actors(tuple(made.actors.values())))]
    assert (6.0, "processor", "n2", "queued", 300) in rows
    assert (6.0, "operator", "b", "rate", 10) in rows
    assert not any(name == LEFT for _, _, name, _, _ in rows)  # what went on upwards would only repeat it
