"""The plan room: planners beside the job that runs, and a plan that is carried out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.console.crowd import MIXED, Served, crowd
from tests.service.test_console import logged_in

from towpath import planners
from towpath.console import planning
from towpath.console.look import Lookout, WantedMove
from towpath.console.planroom import ApplyRequest, PlanRequest, PlanRoom
from towpath.errors import MissingPackageError, PlannerError, UnknownNameError
from towpath.planners import FOLDERS_VARIABLE
from towpath.service.client import Client
from towpath.service.messages import dump_error, load_error
from towpath.store.layout import Store

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with crowd(tmp_path_factory.mktemp("crowd"), MIXED, every="1 second") as found:
        end = time.monotonic() + PATIENCE_S
        while not Store(found.store).situation.exists() and time.monotonic() < end:
            time.sleep(0.1)
        yield found


@pytest.fixture
def http(served: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=served.address, trust_env=False, timeout=PATIENCE_S) as client:
        yield logged_in(client, served, served.token)


def room(store: Path, lookout: Lookout | None = None, limit_s: float = 60.0) -> PlanRoom:
    class Nobody:
        """Whom nothing is asked of."""

    return PlanRoom(Store(store), lookout or Nobody(), limit_s)  # type: ignore[arg-type]


def test_planners_and_metrics_are_listed(http: httpx2.Client) -> None:
    answer = http.get("/console/planners").json()
    assert [planner["name"] for planner in answer["planners"]] == list(planners.available())
    (single,) = [planner for planner in answer["planners"] if planner["name"] == "single"]
    assert single["help"] and single["missing"] == ""
    assert {"name", "unit", "better", "meaning"} == set(answer["metrics"][0])


def test_a_plan_says_what_would_move_and_what_that_would_change(http: httpx2.Client, served: Served) -> None:
    answer = http.post("/console/plan", json={"planner": "single"}).json()
    assert answer["fragments"] == len(MIXED)
    assert answer["moves"] == len(answer["first"]) > 0
    (target,) = {move["target"] for move in answer["first"]}
    assert {move["source"] for move in answer["first"]} == {"left", "right"} - {target}
    highest = answer["metrics"]["load.highest"]
    assert highest["then"] > highest["now"] > 0
    with Client(served.address, served.token) as client:
        assert client.status().moves == []


def test_a_planner_that_nobody_knows(http: httpx2.Client) -> None:
    answer = http.post("/console/plan", json={"planner": "groping"})
    assert answer.status_code == 404 and "did you mean grouping?" in answer.json()["message"]


def test_a_reader_plans_and_applies_nothing(served: Served) -> None:
    with httpx2.Client(base_url=served.address, trust_env=False, timeout=PATIENCE_S) as client:
        logged_in(client, served, served.reader_token)
        assert client.post("/console/plan", json={"planner": "single"}).status_code == 200
        assert client.post("/console/apply", json={"planner": "single", "moves": []}).status_code == 403


def test_a_plan_is_carried_out_and_the_history_says_whose_it_was(http: httpx2.Client, served: Served) -> None:
    moves = http.post("/console/plan", json={"planner": "single"}).json()["first"]
    wanted = [{name: move[name] for name in ("fragment", "source", "target")} for move in moves]
    answer = http.post("/console/apply", json={"planner": "single", "moves": wanted}).json()
    assert answer == {"begun": len(moves), "staying": []}
    target = moves[0]["target"]
    with Client(served.address, served.token) as client:
        end = time.monotonic() + PATIENCE_S
        while client.status().moves and time.monotonic() < end:
            time.sleep(0.2)
        assert {node for query in client.queries() for node in query.nodes} == {target}
    begun = [entry["text"] for entry in http.get("/history").json() if entry["kind"] == "move begun"]
    assert all(text.endswith("single places it there: asked for") for text in begun)
    again = http.post("/console/apply", json={"planner": "single", "moves": wanted}).json()
    assert again["begun"] == 0
    assert {stays["reason"] for stays in again["staying"]} == {f"it is on {target} by now"}


def test_what_is_not_there_stays(http: httpx2.Client) -> None:
    move = {"fragment": "f999", "source": "left", "target": "right"}
    answer = http.post("/console/apply", json={"planner": "x", "moves": [move]}).json()
    reason = "no query uses it any more, or its node is lost or drained"
    assert answer == {"begun": 0, "staying": [{"fragment": "f999", "reason": reason}]}


def test_a_job_that_measures_nothing_is_told_how(tmp_path: Path) -> None:
    with crowd(tmp_path, MIXED) as found, httpx2.Client(base_url=found.address, trust_env=False, timeout=60) as client:
        logged_in(client, found, found.token)
        answer = client.post("/console/plan", json={"planner": "single"})
        assert answer.status_code == 409 and "control: {policy: static}" in answer.json()["message"]
        move = {"fragment": "f1", "source": "left", "target": "right"}
        (stays,) = client.post("/console/apply", json={"planner": "x", "moves": [move]}).json()["staying"]
        assert "no control section" in stays["reason"]


# --- planners that do not answer --------------------------------------------------------------------------------------

OWN = """\"A planner of mine.\"

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    pass


def plan(problem, options):
    """


def planner_of_mine(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, does: str) -> None:
    (folder / f"{name}.py").write_text(f"{OWN}{does}\n")
    monkeypatch.setenv(FOLDERS_VARIABLE, str(folder))


def test_one_that_fails_is_reported_without_a_trace(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner_of_mine(tmp_path, monkeypatch, "broken", "return 1 / 0")
    with pytest.raises(PlannerError, match="ZeroDivisionError: division by zero") as caught:
        asyncio.run(room(served.store).plan(PlanRequest("broken")))
    assert "Traceback" not in str(caught.value)


def test_one_that_does_not_end_is_stopped(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planner_of_mine(tmp_path, monkeypatch, "endless", "import time; time.sleep(600)")
    slow = room(served.store, limit_s=60.0)

    async def ask() -> None:
        await slow.planners()
        slow._limit_s = 3.0
        await slow.plan(PlanRequest("endless"))

    begun = time.monotonic()
    with pytest.raises(PlannerError, match="did not end within 3 seconds"):
        asyncio.run(ask())
    assert time.monotonic() - begun < PATIENCE_S


def test_one_that_lacks_a_package_is_listed_with_the_words_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lack = MissingPackageError("the planner sqpr needs the package highspy", "pip install 'towpath[planners]'")

    def lacking(name: str) -> planners.Planner:
        raise lack

    monkeypatch.setattr(planners, "get", lacking)
    assert {look.missing for look in planning.listed().planners} == {str(lack)}
    again = load_error(dump_error(lack))
    assert isinstance(again, MissingPackageError) and (again.message, again.hint) == (lack.message, lack.hint)


def test_the_loop_is_asked_for_some_moves_at_a_time(tmp_path: Path) -> None:
    asked: list[int] = []

    class Counting:
        def move(self, moves: list[WantedMove], reason: str) -> list[str | None]:
            asked.append(len(moves))
            return ["it rests" if move.fragment == "f7" else None for move in moves]

    async def ask(verb: object) -> object:
        return verb()  # type: ignore[operator]

    moves = [WantedMove(f"f{n}", "left", "right") for n in range(23)]
    applied = asyncio.run(room(tmp_path, Counting()).apply(ApplyRequest("mine", moves), ask))  # type: ignore[arg-type]
    assert asked == [10, 10, 3] and applied.begun == 22
    assert [(stays.fragment, stays.reason) for stays in applied.staying] == [("f7", "it rests")]


def test_unknown_names_start_no_planner(served: Served) -> None:
    with pytest.raises(UnknownNameError):
        asyncio.run(room(served.store).plan(PlanRequest("x" * 200)))
