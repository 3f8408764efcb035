from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console
from rich.table import Table

from towpath.cli import output


class Messages(Console):
    """A stderr that records when something was written to it."""

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


@pytest.mark.parametrize(
    ("by_stream", "unheard", "said"),
    [
        ({}, 0, "0 late rows"),
        ({"a": 2, "b": 1_000}, 0, "1,002 late rows (b 1,000, a 2)"),
        ({}, 1, "at least 0 late rows (the reports of 1 micro-batch were missed)"),
        ({"a": 1}, 2, "at least 1 late rows (a 1; the reports of 2 micro-batches were missed)"),
        ({f"s{n}": 1 for n in range(7)}, 0, "7 late rows (s0 1, s1 1, s2 1, s3 1, s4 1 and 2 more streams)"),
    ],
)
def test_late_rows_are_reported_by_stream(by_stream: dict[str, int], unheard: int, said: str) -> None:
    assert output.late_text(sum(by_stream.values()), by_stream, unheard) == said


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (None, "-"),
        (-1, "1969-12-31 23:59:59"),
        (253_402_300_799_999_999, "9999-12-31 23:59:59"),
        (253_402_300_800_000_000, "after the year 9999 (253,402,300,800,000,000 us)"),
        (-(2**63), "before the year 1 (-9,223,372,036,854,775,808 us)"),
    ],
)
def test_event_times_of_any_calendar(us: int | None, text: str) -> None:
    assert output.event_time(us) == text


def test_a_table_in_a_pipe_is_plain_text_however_long_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("query", "text", title="2 queries")
    table.add_row("hot", "x" * 1200)
    table.add_row("colder", "[y]")
    output.print_data(table, "ok")
    title, heading, first, second, last = capsys.readouterr().out.splitlines()
    assert title.strip() == "2 queries"
    assert heading.split() == ["query", "text"] and first.split() == ["hot", "x" * 1200]
    assert (second.rstrip(), last) == ("colder  [y]", "ok")
