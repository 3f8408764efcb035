"""The HTTP API: who may ask, what is understood, what comes back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from towpath.service import app
from towpath.service.messages import Drain, Migrate, Submit, Withdraw
from towpath.service.request_queue import RequestQueue

from .fakes import FakeVerbs

TOKEN = "the-token"
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def verbs() -> FakeVerbs:
    return FakeVerbs()


@pytest.fixture
def desk() -> RequestQueue:
    return RequestQueue()


@pytest.fixture
def http(verbs: FakeVerbs, desk: RequestQueue) -> Iterator[TestClient]:
    stopped = threading.Event()

    def loop() -> None:
        while not stopped.wait(0.005):
            desk.serve()

    thread = threading.Thread(target=loop)
    thread.start()
    yield TestClient(app.build(verbs, desk, TOKEN), headers=AUTHORISED, raise_server_exceptions=False)
    stopped.set()
    thread.join()


@pytest.mark.parametrize("path", ["/status", "/history", "/nothing-here"])
@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer the-toke", "Bearer the-token2", "Basic the-token", "Bearer né"]
)
def test_without_the_token_nothing_is_answered(
    verbs: FakeVerbs, desk: RequestQueue, path: str, header: str | None
) -> None:
    http = TestClient(app.build(verbs, desk, TOKEN))
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    answer = http.get(path, headers=headers)  # type: ignore[arg-type]
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "expected the token" in answer.json()["message"]


def test_looking(http: TestClient) -> None:
    status = http.get("/status").json()
    assert (status["queries"], status["nodes"][0]["name"], status["moves"][0]["step"]) == (1, "left", "warming")
    assert [query["name"] for query in http.get("/queries").json()] == ["hot"]
    assert [m["number"] for m in http.get("/moves", params={"number": [3, 4]}).json()] == [3, 4]
    assert [entry["text"] for entry in http.get("/history", params={"limit": 1}).json()] == ["it is warming"]


def test_doing(http: TestClient, verbs: FakeVerbs) -> None:
    assert http.post("/queries", json={"queries": {"q": {"sql": "SELECT"}}, "folder": "/"}).json()[0]["name"] == "q"
    assert http.post("/withdraw", json={"names": ["q"]}).json() == ["q"]
    assert http.post("/moves", json={"subject": "hot", "to": "right"}).json()[0]["number"] == 1
    assert http.post("/drain", json={"node": "left", "undo": True}).json()["state"] == "open"
    assert verbs.asked == [
        Submit({"q": {"sql": "SELECT"}}, "/"),
        Withdraw(["q"]),
        Migrate("hot", "right"),
        Drain("left", True),
    ]


@pytest.mark.parametrize(
    ("path", "body", "code", "kind", "said"),
    [
        ("/moves", {"subject": "hot", "to": "busy"}, 409, "MoveRefused", "node busy is being drained"),
        ("/drain", {"node": "busy"}, 409, "NodeRefused", "no node other than busy"),
        ("/queries", {"queries": {"bad": {}}, "folder": "/"}, 422, "QueryError", "     ^^^^"),
        ("/moves", {"subject": "13", "to": "left"}, 500, "ServiceError", "internal error: ZeroDivisionError"),
        ("/moves", {"to": "left"}, 400, "ServiceError", "subject: is missing"),
        ("/moves", {"subject": 5, "to": []}, 400, "ServiceError", "to: expected a text, got []"),
        ("/withdraw", {"names": "hot"}, 400, "ServiceError", 'names: expected a list, got "hot"'),
        (
            "/withdraw",
            [],
            400,
            "ServiceError",
            "expected another request: the request: expected keys with values, got []",
        ),
        ("/drain", None, 400, "ServiceError", "expected JSON"),
        ("/nowhere", {}, 404, "ServiceError", "towpath docs service"),
        ("/status", {}, 405, "ServiceError", "POST /status"),
    ],
)
def test_mistakes_are_reported(http: TestClient, path: str, body: Any, code: int, kind: str, said: str) -> None:
    answer = http.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]) == (code, kind)
    assert said in answer.json()["message"]
    assert "Traceback" not in answer.text


def test_what_is_no_json_is_reported(http: TestClient) -> None:
    answer = http.post("/withdraw", content=b"{'names'")
    assert answer.status_code == 400 and "expected JSON" in answer.json()["message"]


def test_every_problem_comes_with_its_place(http: TestClient) -> None:
    (problem,) = http.post("/queries", json={"queries": {"bad": {}}, "folder": "/"}).json()["problems"]
    assert problem == {
        "where": "queries.bad, line 1",
        "message": "no stream clok",
        "hint": "did you mean clock?",
        "excerpt": "FROM clok\n     ^^^^",
    }


def test_a_loop_that_does_not_come_is_reported_and_nothing_is_done(verbs: FakeVerbs, desk: RequestQueue) -> None:
    http = TestClient(app.build(verbs, desk, TOKEN, patience_s=0.05), headers=AUTHORISED)
    answer = http.post("/withdraw", json={"names": ["q"]})
    assert answer.status_code == 503 and "it was not begun and will not be" in answer.json()["message"]
    desk.serve()
    assert verbs.asked == []


def test_a_verb_under_way_is_not_taken_back(desk: RequestQueue) -> None:
    begun, finish = threading.Event(), threading.Event()

    class Slow(FakeVerbs):
        def withdraw(self, asked: Withdraw) -> list[str]:
            begun.set()
            finish.wait(10)
            return super().withdraw(asked)

    verbs = Slow()
    http = TestClient(app.build(verbs, desk, TOKEN, patience_s=0.5), headers=AUTHORISED)

    def loop() -> None:
        while not begun.is_set():
            desk.serve()

    thread = threading.Thread(target=loop)
    thread.start()
    answer = http.post("/withdraw", json={"names": ["q"]})
    finish.set()
    thread.join()
    assert answer.status_code == 503 and "it has begun and goes on" in answer.json()["message"]
    assert verbs.asked == [Withdraw(["q"])]


def test_a_service_that_stops_says_so(verbs: FakeVerbs, desk: RequestQueue) -> None:
    desk.close()
    http = TestClient(app.build(verbs, desk, TOKEN), headers=AUTHORISED)
    answer = http.get("/status")
    assert answer.status_code == 503 and "is stopping" in json.dumps(answer.json())


def test_more_sql_than_the_job_could_wait_for_is_refused(http: TestClient, verbs: FakeVerbs) -> None:
    queries = {f"q{n}": {"sql": " " * 100_000} for n in range(21)} | {"other": {"sql": 1}, "none": {}}
    answer = http.post("/queries", json={"queries": queries, "folder": "/"})
    assert answer.status_code == 413
    assert "2,100,000 characters of SQL, at most 2,000,000 can be submitted together" in answer.json()["message"]
    assert not verbs.asked
