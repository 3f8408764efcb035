from __future__ import annotations

import pytest

from plans import drawn
from towpath import policies
from towpath.errors import PolicyError, UnknownNameError
from towpath.placement.problem import Placement

PROBLEM = drawn("a(s) b(a)")
PLACEMENT = Placement.single({"a": "n1", "b": "n2"})


def test_policies_are_found_in_their_folder() -> None:
    assert {"dcape", "static", "zhou"} <= set(policies.available())


@pytest.mark.parametrize("name", policies.available())
def test_each_says_what_it_is_and_starts(name: str) -> None:
    assert policies.get(name).help
    made = policies.start(name, PROBLEM, PLACEMENT)
    addresses = [actor.address for actor in made.actors]
    assert len(set(addresses)) == len(addresses)
    assert set(made.measures.values()) <= set(addresses)


def test_nobody_decides_in_the_static_one() -> None:
    assert policies.start("static", PROBLEM, PLACEMENT).actors == ()


def test_options_come_from_texts() -> None:
    options = policies.options("dcape", {"cost": "operator_costs", "every": "30", "at_once": "2"})
    assert (options.cost, options.every, options.at_once) == ("operator_costs", 30.0, 2)


def test_everything_wrong_with_options_is_reported() -> None:
    with pytest.raises(PolicyError) as error:
        policies.options("dcape", {"every": "often", "at_onse": "2"})
    assert len(error.value.problems) == 2


def test_a_wrong_name_is_answered_with_the_right_ones() -> None:
    with pytest.raises(UnknownNameError, match="no policy 'dcap'; did you mean dcape"):
        policies.get("dcap")
