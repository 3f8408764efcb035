from __future__ import annotations

from pathlib import Path

import pytest
from tests.control.world import CATALOG, submission

from towpath.autopilot import policy_of, started_before
from towpath.control.controller import Controller
from towpath.control.records import State
from towpath.errors import PolicyError, UnknownNameError
from towpath.steering import ControlDef


def test_mistakes_of_a_policy_are_told_before_anything_starts() -> None:
    with pytest.raises(UnknownNameError, match="no policy 'dcap'; did you mean dcape"):
        policy_of(ControlDef(policy="dcap"))
    with pytest.raises(PolicyError, match="options of the policy zhou\\nkapa: is not a known key"):
        policy_of(ControlDef(policy="zhou", options={"kapa": 1.5}))


def test_nodes_that_scaling_started_come_back_when_something_is_left_on_them(tmp_path: Path) -> None:
    state = State()
    controller = Controller(state, CATALOG, ("a", "auto1", "auto2"))
    controller.submit([submission("q", "filter", node="auto2"), submission("r", "window", node="a")])
    assert started_before(state, ["a"]) == ["auto2"]
    controller.withdraw("q")
    assert started_before(state, ["a"]) == []
