"""A manager is to its parent what a node is to it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from plans import drawn
from policies.dcape.world import World
from towpath.placement.problem import Placement
from towpath.policies.dcape import Options
from towpath.policies.dcape.export import rows, write
from towpath.policies.dcape.messages import Refused, Report, Request, Requests
from towpath.policies.dcape.tiers import Tier, tiers
from towpath.runtime.moves import Actors, Arrived

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


@pytest.mark.parametrize(
    ("nodes", "fan_out", "height", "managers"), [(5, 0, 1, 1), (4, 2, 2, 3), (8, 2, 3, 7), (9, 3, 2, 4), (2, 2, 1, 1)]
)
def test_as_many_tiers_as_it_takes(nodes: int, fan_out: int, height: int, managers: int) -> None:
    names = [f"n{n}" for n in range(nodes)]
    root = tiers(names, fan_out)

    def count(tier: Tier | str) -> int:
        return 0 if isinstance(tier, str) else 1 + sum(map(count, tier.below))

    def depth(tier: Tier | str) -> int:
        return 0 if isinstance(tier, str) else 1 + max(map(depth, tier.below))

    assert (depth(root), count(root)) == (height, managers)
    assert list(root.nodes()) == names


def test_a_parent_sees_its_children_as_processors() -> None:
    made = world()
    assert made.manager().distribution.table == {"a": LEFT, "b": LEFT, "c": LEFT, "d": LEFT, "j": RIGHT, "k": RIGHT}
    assert made.manager(RIGHT).distribution.table == {"j": "n3", "k": "n4"}


def test_statistics_go_up_in_sum() -> None:
    made = world()
    made.measure("n1", a=10, c=10, d=10, queued=30, load=0.2)
    made.measure("n2", b=10, queued=12, load=0.6)
    made.wait(10)
    (sent,) = [s.message for sender, s in made.sent if sender == LEFT and isinstance(s.message, Report)]
    told = {(c.subject, c.property): c.value for c in sent.changes}
    assert told[LEFT, "queued"] == 42
    assert told[LEFT, "load"] == pytest.approx(0.4)
    assert told[LEFT, "cpu"] == 2
    assert told["b", "rate"] == 10


def test_the_parent_hands_a_fragment_over_and_the_child_places_it() -> None:
    made = world()
    made.measure("n1", a=1, c=1, d=1)
    made.measure("n2", b=10, queued=300)
    made.measure("n3", j=1)
    made.measure("n4", k=1)
    made.wait(59)
    by_parent = [m for asker, m in made.moves if asker == "manager"]
    assert [(m.fragment, m.source, m.target) for m in by_parent] == [("b", "n2", "n3")]  # n3 has j, which reads b
    assert made.where["b"] == "n3"
    assert made.manager().distribution.table["b"] == RIGHT
    assert made.manager(RIGHT).distribution.table == {"j": "n3", "k": "n4", "b": "n3"}
    assert "b" not in made.manager(LEFT).distribution.table
    assert made.agent("n2").connections == set()


def test_a_child_that_moves_it_itself_says_so() -> None:
    made = world()
    made.mute |= {"manager", "n1"}  # the child decides alone, and waits for n1
    made.measure("n2", b=10, queued=300)
    made.wait(56)
    made.tell(LEFT, Arrived(made.now, "manager", Requests("manager", 7, (Request("release", "b"),))))
    assert made.sent[-1][1].message == Refused("manager", 7, f"{LEFT} is moving b itself")


def test_statistics_can_be_opened_in_a_spreadsheet(tmp_path: Path) -> None:
    made = world()
    made.measure("n2", b=10, queued=300)
    write(rows(Actors(tuple(made.actors.values()))), tmp_path / "statistics.csv")
    with (tmp_path / "statistics.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["seconds", "kind", "name", "property", "value"]
    assert ["6.0", "processor", "n2", "queued", "300"] in lines
    assert ["6.0", "operator", "b", "rate", "10"] in lines
