from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from towpath.errors import ServiceError
from towpath.service.service_file import ServiceAddress, is_loopback, new_token, read, written


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "service.json"


def test_it_is_there_as_long_as_the_service_and_its_owners_alone(file: Path) -> None:
    here = ServiceAddress("http://127.0.0.1:1", os.getpid(), new_token())
    leftover = file.with_name(f".tmp-{file.stem}")
    leftover.write_text("of one that was killed")
    leftover.chmod(0o666)
    with written(file, here):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert read(file) == here
        assert list(file.parent.iterdir()) == [file]
    assert read(file) is None and not file.exists()


def test_one_that_a_killed_process_left_does_not_count(file: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with written(file, ServiceAddress("http://127.0.0.1:1", gone.pid, "t")):
        assert read(file) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"address": "http://127.0.0.1:1"}', '{"pid": 1, "x": 2}'])
def test_a_damaged_one_is_reported(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ServiceError, match="expected the file of a service"):
        read(file)


def test_the_token_is_not_shown() -> None:
    assert "secret" not in repr(ServiceAddress("http://127.0.0.1:1", 1, "secret"))


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.4", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_loopback(host: str, here: bool) -> None:
    assert is_loopback(host) is here
