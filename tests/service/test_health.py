"""Whether the service is well: asked by everybody, answered without a name of anything."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from towpath.service import app, health
from towpath.service.messages import Readiness
from towpath.service.request_queue import RequestQueue

from .fakes import FakeVerbs

TOKEN = "the-token"


@pytest.fixture
def verbs() -> FakeVerbs:
    return FakeVerbs()


@pytest.fixture
def desk() -> RequestQueue:
    return RequestQueue()


@pytest.fixture
def http(verbs: FakeVerbs, desk: RequestQueue) -> TestClient:
    return TestClient(app.build(verbs, desk, TOKEN))


@pytest.fixture
def turning(desk: RequestQueue) -> Iterator[None]:
    stopped = threading.Event()

    def loop() -> None:
        while not stopped.wait(0.005):
            desk.serve()

    thread = threading.Thread(target=loop)
    thread.start()
    yield
    stopped.set()
    thread.join()


@pytest.mark.usefixtures("turning")
def test_everybody_may_ask_for_it(http: TestClient) -> None:
    assert (http.get("/healthz").status_code, http.get("/healthz").json()) == (200, {"alive": True})
    answer = http.get("/readyz")
    assert (answer.status_code, answer.json()) == (
        200,
        {"ready": True, "loop": "turns", "nodes": "2 of 2 answer", "journal": "can be written"},
    )
    assert http.head("/readyz").status_code == 200


def test_nobody_without_the_token_may_send_something_with_it(http: TestClient) -> None:
    assert http.request("GET", "/healthz", content=b"a body").status_code == 401
    assert http.request("GET", "/healthz", content=iter([b"a", b"body"])).status_code == 401
    assert http.post("/healthz").status_code == 401
    assert http.get("/readyz/").status_code == 401


@pytest.mark.usefixtures("turning")
def test_a_job_that_does_not_work_is_not_ready(verbs: FakeVerbs, http: TestClient) -> None:
    verbs.readiness = Readiness(False, "turns", "0 of 2 answer", "can be written")
    answer = http.get("/readyz")
    assert (answer.status_code, answer.json()["nodes"]) == (503, "0 of 2 answer")


def test_a_loop_that_stands_still_is_not_ready(http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert http.get("/healthz").status_code == 200
    slow = health.Health(FakeVerbs(), _never, turn_s=0.05)
    answer = TestClient(app.Starlette(routes=slow.routes)).get("/readyz")
    assert (answer.status_code, answer.json()["loop"]) == (503, "has not turned for 0.05 seconds")


async def _never(_: object) -> None:
    await asyncio.sleep(60)


def test_a_job_that_ends_is_not_ready(desk: RequestQueue, http: TestClient) -> None:
    desk.close()
    answer = http.get("/readyz")
    assert (answer.status_code, answer.json()["loop"]) == (503, "is stopping")


@pytest.mark.usefixtures("turning")
def test_however_often_somebody_asks_the_job_is_asked_once(verbs: FakeVerbs, http: TestClient) -> None:
    asked = 0
    ready = verbs.ready

    def counted() -> Readiness:
        nonlocal asked
        asked += 1
        return ready()

    verbs.ready = counted  # type: ignore[method-assign]
    for _ in range(20):
        http.get("/readyz")
    assert asked == 1
