"""Whatever is asked, it is answered in words, and the loop that runs the job goes on."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.nodes import quiet_node

from towpath import job as jobs
from towpath.api.monitor import Monitor
from towpath.api.running import Towpath
from towpath.control.act.engine import Engine
from towpath.control.act.housekeeping import Housekeeper
from towpath.control.act.self_monitor import SelfMonitor
from towpath.control.journal.journal import Journal
from towpath.errors import RuntimeFailure, StoreError
from towpath.service import app
from towpath.service.request_queue import RequestQueue
from towpath.service.verbs import JobVerbs
from towpath.store.layout import Store

JOB = "streams: {clock: {source: {type: rate, rate: 100}}}\nnodes: {left: {type: embedded, cores: 1}}\n"
SQL = "SELECT value FROM clock"
ANSWERS = {200, 400, 404, 405, 409, 422}  # and never 500
LONG = "9" * 5000


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.yaml").write_text(JOB)
    job = jobs.load(folder / "job.yaml")
    store, desk, stopped, ready = Store(job.store), RequestQueue(), threading.Event(), threading.Event()
    built: list[TestClient] = []
    failed: list[BaseException] = []

    def loop() -> None:
        with ExitStack() as stack:
            journal = Journal(store.journal)  # belongs to this thread, as the engine does
            engine = stack.enter_context(Engine(store, journal, {"left": quiet_node()}, job.catalog))
            running = Towpath(job, stack, engine, Housekeeper(store, None), SelfMonitor(folder))
            verbs = JobVerbs(running, Monitor(engine.controller, store), store)
            headers = {"Authorization": "Bearer t"}
            built.append(TestClient(app.build(verbs, desk, "t"), headers=headers, raise_server_exceptions=False))
            ready.set()
            try:
                while not stopped.wait(0.001):
                    running.poll(lambda events: desk.serve())
            except BaseException as error:
                failed.append(error)
                desk.close()

    thread = threading.Thread(target=loop)
    thread.start()
    assert ready.wait(30)
    yield built[0]
    stopped.set()
    thread.join()
    assert not failed, "a request has ended the loop"


odd_text = st.one_of(
    st.text(st.characters(codec=None), max_size=30),  # also lone surrogates and NUL
    st.sampled_from(
        ["", LONG, "q", "left", "1", "../..", "\0", "a\0b", "\ud800", SQL, f"{SQL} WHERE value > {LONG}", "²"]
    ),
)
odd = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), odd_text),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(odd_text, inner, max_size=4)),
    max_leaves=12,
)
definition = st.fixed_dictionaries(
    {"sql": st.one_of(odd_text, st.just(SQL))},
    optional={"node": odd, "sink": odd, "from": odd, "copies": odd, "fragments": odd},
)
requests = st.one_of(
    st.tuples(
        st.just("/queries"),
        st.fixed_dictionaries({"queries": st.dictionaries(odd_text, definition, max_size=2), "folder": odd_text}),
    ),
    st.tuples(st.just("/withdraw"), st.fixed_dictionaries({"names": st.lists(odd_text, max_size=3)})),
    st.tuples(st.just("/moves"), st.fixed_dictionaries({"subject": odd_text, "to": odd_text})),
    st.tuples(st.just("/drain"), st.fixed_dictionaries({"node": odd_text}, optional={"undo": odd})),
    st.tuples(st.sampled_from(["/queries", "/withdraw", "/moves", "/drain"]), odd),
)


def text_of(body: Any) -> bytes:
    return json.dumps(body).encode()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=requests)
@example(asked=("/moves", {"subject": LONG, "to": "left"}))
@example(asked=("/queries", {"queries": {"q": {"sql": "SELECT '\ud800' AS x FROM clock"}}, "folder": "/"}))
@example(
    asked=("/queries", {"queries": {"q": {"sql": SQL, "sink": {"type": "parquet", "path": "a\0b"}}}, "folder": "/"})
)
@example(asked=("/queries", {"queries": {"q": {"sql": SQL}}, "folder": "\0"}))
@example(asked=("/withdraw", {"names": ["\ud800"]}))
@example(asked=("/drain", {"node": "left", "undo": float("nan")}))
def test_any_request_is_answered_in_words(http: TestClient, asked: tuple[str, Any]) -> None:
    path, body = asked
    answer = http.post(path, content=text_of(body))
    assert answer.status_code in ANSWERS, answer.text
    assert "Traceback" not in answer.text
    assert http.get("/status").status_code == 200, "the loop goes on"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f'{{"names": [{LONG}]}}'.encode(), id="a number of 5,000 digits"),
        pytest.param(b"[" * 100_000, id="deeply nested"),
        pytest.param(b'{"names": ["\xff"]}', id="not UTF-8"),
        pytest.param(b'{"names": ["\\ud800"]}', id="half of a character"),
        pytest.param(b'{"names": [NaN]}', id="NaN"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_request_is_refused(http: TestClient, body: bytes) -> None:
    answer = http.post("/withdraw", content=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "ServiceError")
    assert http.get("/status").status_code == 200


@pytest.mark.parametrize("number", [LONG, "-1", "9" * 30, "x", "1.5"])
@pytest.mark.parametrize("question", ["/moves?number={}", "/history?limit={}", "/history?since_us={}&after={}"])
def test_odd_numbers_in_a_question(http: TestClient, question: str, number: str) -> None:
    assert http.get(question.format(number, number)).status_code in {200, 400}
    assert http.get("/status").status_code == 200


@pytest.mark.parametrize("error", [RuntimeFailure("Spark is gone"), StoreError("the disk is full")])
def test_what_the_job_cannot_do_now_is_reported_with_its_trace_in_the_log(
    http: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    with monkeypatch.context() as faulty, caplog.at_level(logging.ERROR):
        faulty.setattr(JobVerbs, "queries", MagicMock(side_effect=error))
        answer = http.get("/queries")
    assert (answer.status_code, answer.json()["message"]) == (500, str(error))
    assert any(record.exc_info for record in caplog.records if record.name == "towpath.service.app")
    assert http.get("/queries").status_code == 200


def test_what_nobody_thought_of_is_reported_with_its_trace_in_the_log(
    http: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as faulty, caplog.at_level(logging.ERROR):
        faulty.setattr(JobVerbs, "queries", lambda self: 1 / 0)
        answer = http.get("/queries")
    assert answer.status_code == 500 and "internal error: ZeroDivisionError" in answer.json()["message"]
    assert any(record.exc_info for record in caplog.records if record.name == "towpath.service.app")
    assert http.get("/queries").status_code == 200
