"""Real HTTP on this machine, without Spark."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from towpath.errors import ServiceError
from towpath.service.client import find
from towpath.service.request_queue import RequestQueue
from towpath.service.server import serving
from towpath.store.layout import Store

from .fakes import FakeVerbs, service


def test_it_answers_those_who_can_read_the_store(tmp_path: Path) -> None:
    with service(tmp_path, FakeVerbs()) as address, find(tmp_path) as client:
        assert address.startswith("http://127.0.0.1:")
        assert client.status().queries == 1
    assert not Store(tmp_path).service.exists()
    with pytest.raises(ServiceError, match="no service runs on this store"):
        find(tmp_path)


def test_a_failure_inside_takes_the_file_away_too(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), service(tmp_path, FakeVerbs()):
        raise ZeroDivisionError
    assert not Store(tmp_path).service.exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.4", "example.org"])
def test_only_this_machine(tmp_path: Path, host: str) -> None:
    with (
        pytest.raises(ServiceError, match=r"SSH tunnel or a proxy with TLS; `towpath docs service`"),
        serving(FakeVerbs(), RequestQueue(), Store(tmp_path), host),
    ):
        pass


def test_a_port_that_is_taken_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ServiceError, match=f"127.0.0.1:{port}: the service cannot listen there: .*in use"),
            serving(FakeVerbs(), RequestQueue(), Store(tmp_path), port=port),
        ):
            pass
