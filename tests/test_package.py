"""What is in the package: one version, the guide that messages cite, files that deploy it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import yaml
from click.testing import CliRunner

import towpath
from towpath import guide
from towpath.cli import main

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src/towpath").rglob("*.py"))


def test_the_version_stands_in_one_place() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert declared == version("towpath") == towpath.__version__
    assert [path for path in SOURCES if f'"{declared}"' in path.read_text()] == []


def texts(path: Path) -> Iterator[str]:
    """What may be shown to somebody: all texts but docstrings, and the docstrings of commands."""
    tree = ast.parse(path.read_text())
    told = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            command = isinstance(node, ast.FunctionDef) and "command" in ast.unparse(ast.Tuple(node.decorator_list))
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and not command:
                told.add(id(first.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def test_messages_cite_what_everybody_has() -> None:
    shown = {(path.name, text) for path in SOURCES for text in texts(path)}
    assert [(name, text) for name, text in shown if re.search(r"docs/[\w-]+\.md", text)] == []
    cited = {page for _, text in shown for page in re.findall(r"`towpath docs ([a-z_/-]+)`", text)}
    assert {"service", "control", "placement"} <= cited <= guide.pages().keys()


def test_the_guide_is_shown_page_by_page() -> None:
    listed = CliRunner().invoke(main, ["docs"]).stdout
    assert "job-file" in listed and "The job file" in listed
    for name in ("job-file", "docs/job-file.md", "Job-File"):
        assert CliRunner().invoke(main, ["docs", name]).stdout == (ROOT / "docs/job-file.md").read_text()
    result = CliRunner().invoke(main, ["docs", "job-fil"])
    assert result.exit_code == 1 and "did you mean job-file?" in result.stderr


def test_the_examples_are_where_it_says() -> None:
    folder = Path(CliRunner().invoke(main, ["docs", "--folder"]).stdout.strip())
    assert (folder / "examples/market.yaml").is_file()


def test_what_containers_run_is_right() -> None:
    folder = ROOT / "examples/docker"
    service = yaml.safe_load((folder / "compose.yaml").read_text())["services"]["towpath"]
    assert CliRunner().invoke(main, ["check", str(folder / "job.yaml")]).exit_code == 0
    assert service["command"][:2] == ["up", "job.yaml"]
    (port,) = re.findall(r"127\.0\.0\.1:(\d+)/readyz", service["healthcheck"]["test"][-1])
    assert service["command"][service["command"].index("--port") + 1] == port


def test_the_image_has_what_the_guide_says() -> None:
    lines = (ROOT / "Dockerfile").read_text()
    assert "USER towpath" in lines and lines.index("USER towpath") < lines.index("ENTRYPOINT")
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    (used,) = set(re.findall(r"^FROM python:(\d\.\d+)", lines, re.MULTILINE))
    assert tuple(map(int, used.split("."))) >= tuple(map(int, oldest.strip(">=").split(".")))
