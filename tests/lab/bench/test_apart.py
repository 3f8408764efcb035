from __future__ import annotations

from pathlib import Path

import pytest

from towpath.errors import RuntimeFailure, StoreError
from towpath.lab.bench.apart import apart, new_log
from towpath.lab.bench.steps import Say


def double(number: int, say: Say) -> int:
    say("doubling")
    print("noise")
    return 2 * number


def refuse(say: Say) -> None:
    raise StoreError("no room")


def break_down(say: Say) -> None:
    raise ValueError("broken\nin two lines")


def vanish(say: Say) -> None:
    raise SystemExit


def test_the_answer_and_what_was_said_come_back(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    assert apart(double, 21, log=tmp_path / "log", say=said.append) == 42
    assert said == ["doubling"]
    assert (tmp_path / "log").read_text() == "noise\n"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (refuse, "no room"),
        (break_down, "ValueError: broken; see"),
        (vanish, "a measurement ended without an answer; see"),
    ],
)
def test_a_failure_is_reported_in_one_line(measure: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailure, match=message) as caught:
        apart(measure, log=tmp_path / "log", say=lambda text: None)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_the_log_has_a_name_that_nobody_knows_before() -> None:
    logs = [new_log(), new_log()]
    try:
        assert logs[0] != logs[1]
        assert {log.stat().st_mode & 0o777 for log in logs} == {0o600}
    finally:
        for log in logs:
            log.unlink()
