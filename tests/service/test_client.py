from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from service.fakes import FakeVerbs, service
from towpath.errors import MoveRefused, QueryError, ServiceError
from towpath.service.client import Client, find
from towpath.service.messages import LookRequest, MoveStatus, Submit
from towpath.store.layout import Store


@pytest.fixture
def verbs() -> FakeVerbs:
    return FakeVerbs()


@pytest.fixture
def client(tmp_path: Path, verbs: FakeVerbs) -> Iterator[Client]:
    with service(tmp_path, verbs), find(tmp_path) as found:
        yield found


def test_answers_come_as_they_were_given(client: Client, verbs: FakeVerbs) -> None:
    assert client.status() == FakeVerbs().status()
    assert client.queries() == verbs.queries()
    assert client.migrate("hot", "right") == [
        MoveStatus(1, 7, "hot", "left", "right", ["c0 (universal)", "c1 (universal)"], "warming", None, 0, "asked for"),
    ]
    assert [move.number for move in client.moves([4, 5])] == [4, 5]
    assert [entry.kind for entry in client.history(LookRequest(limit=1))] == ["move warming"]
    assert client.withdraw(["hot"]) == ["hot"]
    assert client.drain("left", undo=True).state == "open"


def test_paths_are_relative_to_where_the_client_is(client: Client, verbs: FakeVerbs) -> None:
    client.submit({"q": {"sql": "SELECT 1"}})
    assert verbs.asked == [Submit({"q": {"sql": "SELECT 1"}}, str(Path.cwd()))]


def test_errors_are_those_of_the_service(client: Client) -> None:
    with pytest.raises(QueryError) as wrong:
        client.submit({"bad": {"sql": "SELECT"}})
    assert str(wrong.value) == (
        "1 mistake in queries:\nqueries.bad, line 1: no stream clok\n    FROM clok\n         ^^^^\n"
        "    -> did you mean clock?"
    )
    with pytest.raises(MoveRefused, match="node busy is being drained"):
        client.migrate("hot", "busy")


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="-> `towpath up JOB` starts one"):
        find(tmp_path)
    with Store(tmp_path).lock(), pytest.raises(ServiceError, match=r"process \d+ runs the job"):
        find(tmp_path)


def test_one_that_does_not_answer(tmp_path: Path, verbs: FakeVerbs) -> None:
    with service(tmp_path, verbs):
        client = find(tmp_path)
    with pytest.raises(ServiceError, match="the service does not answer"):
        client.status()


@pytest.mark.parametrize(
    ("code", "text", "said"),
    [
        (401, "{}", "refused the token"),
        (200, "<html>", "expected JSON from a service of towpath"),
        (200, "[1]", "expected another answer; the service may"),
    ],
)
def test_somebody_else_answers(code: int, text: str, said: str) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(code, text=text))
    with Client("http://127.0.0.1:1", "t", transport) as client, pytest.raises(ServiceError, match=said):
        client.status()


@pytest.mark.parametrize("address", ["http://example.org", "http://10.0.0.1:80", "ftp://127.0.0.1", "127.0.0.1:80", ""])
def test_a_token_does_not_travel_in_the_open(address: str) -> None:
    with pytest.raises(ServiceError, match="use TLS or an SSH tunnel"):
        Client(address, "t")


@pytest.mark.parametrize("address", ["https://example.org", "http://localhost:80", "http://[::1]:80"])
def test_what_is_safe_is_allowed(address: str) -> None:
    Client(address, "t")
