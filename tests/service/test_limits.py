"""What others can take from the service, over real sockets: those who hold it up, and pages that are not its own."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from towpath.service import app, limits, service_file
from towpath.service.client import find
from towpath.service.messages import HistoryEntry, LookRequest
from towpath.service.request_queue import RequestQueue
from towpath.store.layout import Store

from .fakes import FakeVerbs, service

PATIENCE_S = 60
HALF = b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[str, int]]:
    with service(tmp_path, FakeVerbs()) as address:
        parts = urlsplit(address)
        yield parts.hostname or "", parts.port or 0


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEADER_S", 0.3)


def authorised(folder: Path) -> bytes:
    found = service_file.read(Store(folder).service)
    assert found is not None
    return f"Authorization: Bearer {found.token}\r\n".encode()


def said_at_last(connection: socket.socket) -> bytes:
    """Everything until the service closes the connection."""
    connection.settimeout(PATIENCE_S)
    found = b""
    try:
        while more := connection.recv(65536):
            found += more
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("sent", [b"", b"GET", HALF, HALF + b"X: " + b"x" * 1000])
def test_who_sends_half_a_request_is_not_waited_for(place: tuple[str, int], hurried: None, sent: bytes) -> None:
    with socket.create_connection(place) as half:
        half.sendall(sent)
        assert said_at_last(half) == b""


def test_a_body_that_nobody_wants_is_not_waited_for(place: tuple[str, int], hurried: None) -> None:
    with socket.create_connection(place) as half:
        half.sendall(HALF.replace(b"GET", b"POST") + b"Content-Length: 1000\r\n\r\nx")
        assert b"401 Unauthorized" in said_at_last(half)


def test_the_time_begins_anew_with_each_answer_and_not_with_each_byte(
    place: tuple[str, int], tmp_path: Path, hurried: None
) -> None:
    with socket.create_connection(place) as half:
        half.sendall(HALF + authorised(tmp_path) + b"\r\n" + HALF)
        assert said_at_last(half).count(b"200 OK") == 1


def test_however_many_send_half_a_request_who_sends_a_whole_one_is_answered(
    place: tuple[str, int], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        halves = [stack.enter_context(socket.create_connection(place)) for _ in range(limits.MOST_CONNECTIONS + 40)]
        for half in halves[: limits.MOST_CONNECTIONS]:
            half.send(HALF)
        with find(tmp_path) as client:
            assert client.status().queries == 1
        assert said_at_last(halves[0]) == b""  # the longest wait is over first


def test_a_body_is_bounded_before_it_is_read(place: tuple[str, int], tmp_path: Path) -> None:
    with socket.create_connection(place) as large:
        header = HALF.replace(b"GET /status", b"POST /queries") + authorised(tmp_path)
        large.sendall(header + b"Connection: close\r\nContent-Length: 200000000\r\n\r\n")
        said = said_at_last(large)
    assert b"413" in said and b"at most 16,777,216 bytes" in said


def test_a_body_of_unknown_length_is_bounded_too(place: tuple[str, int], tmp_path: Path) -> None:
    piece = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
    with socket.create_connection(place) as large:
        header = HALF.replace(b"GET /status", b"POST /queries") + authorised(tmp_path)
        large.sendall(header + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(17):
                large.sendall(piece)
        except OSError:  # it has been refused meanwhile
            pass
        assert b"413" in said_at_last(large)


def test_a_body_that_does_not_end_is_refused_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.BoundedBody.__init__, "__defaults__", (limits.MOST_BODY, 0.3))
    with service(tmp_path, FakeVerbs()) as address:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port)) as slow:
            header = HALF.replace(b"GET /status", b"POST /withdraw") + authorised(tmp_path)
            slow.sendall(header + b"Connection: close\r\nContent-Length: 1000\r\n\r\n{")
            assert b"408" in said_at_last(slow)


LONG = 8_000_000  # bytes: more than what the kernel keeps for a connection


class LongWinded(FakeVerbs):
    """Has answers that fill every buffer on the way."""

    def history(self, asked: LookRequest) -> list[HistoryEntry]:
        return [HistoryEntry(1, 0, "said", "x" * LONG, None, None, [])]


@pytest.fixture
def long_winded(tmp_path: Path) -> Iterator[tuple[str, int]]:
    with service(tmp_path, LongWinded()) as address:
        parts = urlsplit(address)
        yield parts.hostname or "", parts.port or 0


def asking_for_much(place: tuple[str, int], folder: Path) -> socket.socket:
    asking = socket.socket()
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    asking.connect(place)
    asking.sendall(HALF.replace(b"/status", b"/history") + authorised(folder) + b"\r\n")
    return asking


def wait_for_answer(asking: socket.socket) -> None:
    """Until it has begun, and so is written and not read, or there will be none."""
    asking.settimeout(PATIENCE_S)
    with suppress(ConnectionResetError):
        asking.recv(1, socket.MSG_PEEK)


def test_who_does_not_read_the_answer_is_not_waited_for(
    long_winded: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "UNREAD_S", 0.3)
    with asking_for_much(long_winded, tmp_path) as deaf:
        time.sleep(3)
        assert 0 < len(said_at_last(deaf)) < LONG


@pytest.mark.parametrize("closes", [False, True])
def test_who_reads_slowly_gets_everything(
    long_winded: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closes: bool
) -> None:
    monkeypatch.setattr(limits, "UNREAD_S", 1.0)
    monkeypatch.setattr(limits, "HEADER_S", 1.0)
    with socket.create_connection(long_winded) as slow:
        header = HALF.replace(b"/status", b"/history") + authorised(tmp_path)
        slow.sendall(header + (b"Connection: close\r\n" if closes else b"") + b"\r\n")
        slow.settimeout(PATIENCE_S)
        found = 0
        for _ in range(15):
            time.sleep(0.15)
            found += len(slow.recv(400_000))
        assert found + len(said_at_last(slow)) > LONG


def test_however_many_do_not_read_who_reads_is_answered(
    long_winded: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 4)  # each of them costs the memory of its answer
    with ExitStack() as stack:
        for asking in [asking_for_much(long_winded, tmp_path) for _ in range(limits.MOST_CONNECTIONS + 5)]:
            wait_for_answer(stack.enter_context(asking))  # until then it is not known who does not read
        with find(tmp_path) as client:
            assert client.status().queries == 1


def test_half_a_body_is_no_request(tmp_path: Path) -> None:
    verbs = FakeVerbs()
    with service(tmp_path, verbs) as address:
        parts = urlsplit(address)
        body = json.dumps({"names": ["hot"]}).encode()
        with socket.create_connection((parts.hostname, parts.port)) as gone:
            header = HALF.replace(b"GET /status", b"POST /withdraw") + authorised(tmp_path)
            gone.sendall(header + b"Content-Length: %d\r\n\r\n" % (len(body) + 1) + body)
        with find(tmp_path) as client:
            client.status()
        assert not verbs.asked


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "LOCALHOST:8765", "[::1]:80", "jobs.example:443"])
@pytest.mark.parametrize("origin", [None, "http://HOST", "https://HOST", "https://jobs.example"])
def test_pages_of_this_machine_and_of_a_proxy_that_was_named_are_answered(host: str, origin: str | None) -> None:
    assert asked(host, origin and origin.replace("HOST", host)) == 401


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("evil.example", None),
        ("127.0.0.1.evil.example", None),
        ("127.0.0.1@evil.example", None),
        ("evil.example:80", "http://evil.example:80"),
        ("", None),
        ("[", None),
        ("localhost", "http://evil.example"),
        ("localhost:1", "http://localhost:2"),
        ("localhost", "null"),
        ("localhost", ""),
    ],
)
def test_pages_from_elsewhere_are_refused(host: str, origin: str | None) -> None:
    assert asked(host, origin) == 403


def asked(host: str, origin: str | None) -> int:
    pages = limits.OwnPages(app.build(FakeVerbs(), RequestQueue(), "t"), ["jobs.example"])
    headers = {"Host": host} | ({} if origin is None else {"Origin": origin})
    return TestClient(pages).get("/status", headers=headers).status_code
