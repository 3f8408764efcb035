from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console
from rich.table import Table

from towpath.cli import output


class Messages(Console):
    """A stderr that tells when something was written to it."""

    def __init__(self, terminal: bool) -> None:
        self.written = threading.Event()
        super().__init__(file=io.StringIO(), force_terminal=terminal, highlight=False)

    def print(self, *args: object, **options: object) -> None:
        super().print(*args, **options)  # type: ignore[arg-type]
        self.written.set()

    @property
    def text(self) -> str:
        return self.file.getvalue()  # type: ignore[attr-defined]


def test_what_takes_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = Messages(terminal=False)
    monkeypatch.setattr(output, "MESSAGES", messages)
    monkeypatch.setattr(output, "PATIENCE_S", 0.0)
    with output.working("checking"):
        messages.written.wait(30)
    assert messages.text == "checking ...\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    messages = Messages(terminal)
    monkeypatch.setattr(output, "MESSAGES", messages)
    monkeypatch.setattr(output, "PATIENCE_S", 3600.0)
    with output.working("checking") as say:
        say("still checking")
    assert "checking" not in messages.text


def test_a_table_in_a_pipe_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("columns")
    table.add_row(wide := "x" * 300)
    output.print_data(table)
    assert wide in capsys.readouterr().out


def test_json_keeps_letters_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"name": "Größe"})
    assert capsys.readouterr().out == '{\n  "name": "Größe"\n}\n'
