"""What docs/commands.md says of all commands is so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from stores import make_store
from towpath.cli import failures, main
from towpath.cli.app import COMMANDS, command
from towpath.errors import StoreError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/commands.md").read_text()
BOXES = re.compile("[\u2500-\u257f]")
MARKET = ROOT / "examples/market.yaml"


def table(heading: str) -> list[list[str]]:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"][
        2:
    ]


def test_the_exit_codes_are_those_there_are() -> None:
    known = {0, failures.FAILED, click.UsageError.exit_code, failures.INTERNAL, failures.STOPPED, failures.CLOSED}
    assert {int(code) for code, *_ in table("Exit codes")} == known


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (None, 0),
        (StoreError("no"), 1),
        (click.UsageError("what?"), 2),
        (ZeroDivisionError(), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_exit_code(
    raised: BaseException | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    @click.group(cls=failures.GuardedGroup)
    def group() -> None: ...

    @group.command()
    def work() -> None:
        if raised is not None:
            raise raised

    assert CliRunner().invoke(group, ["work"]).exit_code == code


def test_the_exit_code_when_the_reader_has_gone(tmp_path: Path) -> None:
    store = make_store(tmp_path / "job.store")
    run = f"from towpath.cli import main; main(['docs', 'language'])  # {store}"
    process = subprocess.Popen([sys.executable, "-c", run], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 141


def test_the_commands_that_take_a_job_are_those_of_the_page() -> None:
    named = {name for row in table("Which job") for name in re.findall(r"`([\w-]+)`", row[0])}
    takes = {name for name in COMMANDS if "[JOB]" in CliRunner().invoke(main, [name, "--help"]).stdout}
    assert named == takes


def test_every_command_that_answers_with_data_has_json() -> None:
    without = {name for name in COMMANDS if not isinstance(found := command(name), click.Group) and not has_json(found)}
    assert without == {"demo", "top", "up"}  # they show something as it changes
    node = command("node")
    assert isinstance(node, click.Group)
    assert all(has_json(found) for found in node.commands.values())


def has_json(found: click.Command) -> bool:
    return any(parameter.name == "as_json" for parameter in found.params)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(MARKET, tmp_path / "market.yaml")
    make_store(tmp_path / "market.store")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["check", "market.yaml"],
        ["explain", "high-bids"],
        ["explain", "market.yaml", "high-bids"],
        ["results"],
        ["results", "since"],
        ["results", "market.yaml", "since"],
        ["results", "market.store", "since"],
        ["sql", "SELECT 1/2 AS half"],
        ["history"],
        ["history", "market.store"],
        ["rejected"],
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_job_that_is_the_only_one_need_not_be_named(words: list[str]) -> None:
    drawn = words[0] == "explain"
    if drawn:
        shutil.rmtree("market.store")  # it has results alone, and no carrier to explain
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert drawn or not BOXES.search(result.stdout)
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check"], "found a.yaml, market.yaml"),
        (["run", "nowhere.yaml"], "nowhere.yaml"),
        (["results", "nowhere.yaml"], "expected a job file or the store of a job"),
        (["results", "since", "gone"], "expected a job file or the store of a job"),
        (["drain", "left", "right"], "expected [JOB] NODE, got left right"),
    ],
)
def test_what_could_be_several_is_asked_for(folder: Path, words: list[str], said: str) -> None:
    (folder / "a.yaml").touch()
    result = CliRunner().invoke(main, words)
    assert result.exit_code in (1, 2)
    assert said in result.stderr


def test_without_a_job_file_there_is_a_way_to_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "towpath init" in CliRunner().invoke(main, ["check"]).stderr


@pytest.mark.usefixtures("folder")
def test_on_a_terminal_colours_and_width_are_as_asked_for() -> None:
    import pty

    def shown(**environment: str) -> str:
        controller, terminal = pty.openpty()
        run = "from towpath.cli import main; main(['check', 'no-such.yaml'])"
        process = subprocess.Popen(
            [sys.executable, "-c", run],
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )
        os.close(terminal)
        process.wait()
        said = os.read(controller, 100_000).decode()
        os.close(controller)
        return said

    coloured = re.compile(r"\x1b\[[\d;]*3[0-7]m")
    assert coloured.search(shown()) and not coloured.search(shown(NO_COLOR="1"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_as_the_page_says(shell: str) -> None:
    assert f"_TOWPATH_COMPLETE={shell}_source towpath" in PAGE
    if shell != "fish" and shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    run = "from towpath.cli import main; main(prog_name='towpath')"
    environment = os.environ | {"_TOWPATH_COMPLETE": f"{shell}_source"}
    script = subprocess.run([sys.executable, "-c", run], env=environment, capture_output=True, text=True, check=True)
    assert "_TOWPATH_COMPLETE=" + f"{shell}_complete" in script.stdout
    asked = environment | {"_TOWPATH_COMPLETE": "bash_complete", "COMP_WORDS": "towpath res", "COMP_CWORD": "1"}
    found = subprocess.run([sys.executable, "-c", run], env=asked, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["plain,results"]
