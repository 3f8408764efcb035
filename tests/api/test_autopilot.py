from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.control.world import CATALOG, submission

from towpath import policies
from towpath.api.autopilot import started_before
from towpath.api.checking import check
from towpath.api.steering import policy_of
from towpath.config.steering import ControlDef, ScalingDef
from towpath.control.decide.controller import Controller
from towpath.control.state.records import State
from towpath.errors import JobError, PolicyError, UnknownNameError
from towpath.job import Job, load

JOB = """
nodes:
  a: {type: embedded, cores: 2, properties: {site: berlin}}
  b: {type: embedded, cores: 2%s}
streams:
  s: {source: {type: rate, rate: 10}}
queries: {}
"""


def job(folder: Path, properties: str = "") -> Job:
    (folder / "job.yaml").write_text(JOB % properties)
    return load(folder / "job.yaml")


def test_mistakes_of_a_policy_are_reported_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no policy 'dcap'; did you mean dcape"):
        policy_of(job(tmp_path), ControlDef(policy="dcap"))
    with pytest.raises(PolicyError, match="options of the policy zhou\\nkapa: is not a known key"):
        policy_of(job(tmp_path), ControlDef(policy="zhou", options={"kapa": 1.5}))


def test_what_a_policy_asks_of_nodes_is_reported_then_too(tmp_path: Path) -> None:
    by_site = ControlDef(policy="dcape", options={"group_by": "site"})
    with pytest.raises(PolicyError, match="'site' is no property of b"):
        policy_of(job(tmp_path), by_site)
    there = job(tmp_path, ", properties: {site: paris}")
    policy_of(there, by_site)
    scaling = ScalingDef.model_validate({"start": "local", "max": 2})
    with pytest.raises(PolicyError, match="'site' is no property of auto1"):
        policy_of(there, by_site.model_copy(update={"scaling": scaling}))


def test_check_reports_all_of_them_at_once(tmp_path: Path) -> None:
    control = {"planner": "first_fitt", "policy": "zhou", "options": {"kapa": 1.5}}
    with pytest.raises(JobError) as error:
        check(replace(job(tmp_path), control=ControlDef.model_validate(control)))
    assert [mistake.where for mistake in error.value.problems] == ["control.planner", "control.options.kapa"]
    assert "did you mean first_fit?" in str(error.value)


def test_only_a_planner_that_keeps_to_what_nodes_have_can_refuse_queries(tmp_path: Path) -> None:
    control = {"planner": "round_robin", "admission": {"by": "planner"}}
    with pytest.raises(JobError) as error:
        check(replace(job(tmp_path), control=ControlDef.model_validate(control)))
    (mistake,) = error.value.problems
    assert mistake.where == "control.admission.by"
    assert "sqpr" in (mistake.hint or "")
    check(replace(job(tmp_path), control=ControlDef.model_validate({**control, "planner": "sqpr"})))


@pytest.mark.parametrize("policy", policies.available())
def test_every_policy_starts_before_there_are_queries(policy: str, tmp_path: Path) -> None:
    policy_of(job(tmp_path), ControlDef(policy=policy))


def test_nodes_that_scaling_started_come_back_when_something_is_left_on_them(tmp_path: Path) -> None:
    state = State()
    controller = Controller(state, CATALOG, ("a", "auto1", "auto2"))
    controller.queries.submit([submission("q", "filter", node="auto2"), submission("r", "window", node="a")])
    assert started_before(state, ["a"]) == ["auto2"]
    controller.queries.withdraw("q")
    controller.rest(next(c.id for c in state.carriers.values() if c.node == "auto2"))  # it has shown nothing to anybody
    assert started_before(state, ["a"]) == []
