"""The guide is what it says: its commands run, what is made of the settings is up to date, and its pages build."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import fastjsonschema
import pytest
import yaml

from towpath import job
from towpath.api.job_schema import schema

ROOT = Path(__file__).parents[1]
TUTORIAL = (ROOT / "docs/tutorial.md").read_text()
JOBS = ROOT / "tests/data/jobs"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


# --- the tutorial ----------------------------------------------------------------------------------------------------


def steps() -> Iterator[tuple[str, str]]:
    """Files with their names, and commands with none, in the order of the page."""
    for name, kind, text in re.findall(r"(?:`([\w.-]+)`:\n\n)?```(\w+)\n(.*?)```", TUTORIAL, re.DOTALL):
        assert (kind == "yaml") == bool(name)
        yield name, text


def test_the_job_files_of_the_tutorial_are_right(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    files = {name: text for name, text in steps() if name}
    assert list(files) == ["shop.yaml", "kafka-shop.yaml"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        assert "large" in job.load(tmp_path / name).queries


@pytest.mark.spark
@pytest.mark.long
def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    towpath = tmp_path / "bin/towpath"
    towpath.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from towpath.cli import main; main()" "$@"\n')
    towpath.chmod(0o755)
    # In a terminal jobs have numbers; in a script that has to be asked for.
    lines = ["set -e -o pipefail -o monitor", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for name, text in steps():
        if name:
            (tmp_path / name).write_text(text)
        else:
            lines.append(text)
    environment = os.environ | {"PATH": f"{towpath.parent}:{os.environ['PATH']}"}
    run = subprocess.Popen(
        ["bash", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said, _ = run.communicate(timeout=400)
    log = (tmp_path / "up.log").read_text() if (tmp_path / "up.log").exists() else ""
    assert run.returncode == 0, f"{said[-4000:]}\n{log[-2000:]}"
    for word in ("move passed", "move drained", "german", "per-country"):
        assert word in said


# --- what is made of the settings ------------------------------------------------------------------------------------


def test_the_reference_and_the_schema_are_up_to_date() -> None:
    for path, text in script("reference").contents().items():
        assert path.read_text() == text, f"{path.name}: `make reference` writes it anew"


@pytest.fixture(scope="module")
def takes() -> Any:
    return fastjsonschema.compile(schema())


PROBLEMS = {"problem.yaml", "sites.yaml"}  # examples that are no job files
EXAMPLES = {path for path in (ROOT / "examples").glob("**/*.yaml") if path.name not in {"compose.yaml", *PROBLEMS}}
GOOD = {*JOBS.glob("good/*.yaml"), *EXAMPLES}


@pytest.mark.parametrize("path", sorted(GOOD), ids=lambda path: path.name)
def test_the_schema_takes_what_towpath_takes(path: Path, takes: Any) -> None:
    content = yaml.safe_load(path.read_text())
    takes(json.loads(json.dumps(content, default=lambda moment: moment.isoformat())))


SHOP = {"streams": {"s": {"source": {"type": "rate", "rate": 1}}}}


@pytest.mark.parametrize(
    "content",
    [
        {},
        {**SHOP, "trigger": "soon!"},
        {**SHOP, "carriers": "some"},
        {**SHOP, "querys": {}},
        {"streams": {"s": {"source": {"type": "rate", "rate": 0}}}},
        {"streams": {"s": {"source": {"type": "rates", "rate": 1}}}},
        {"streams": {"s": {"source": {"type": "rate", "rate": 1, "seeds": 2}}}},
        {**SHOP, "nodes": {"here": {"type": "embedded"}}},
        {**SHOP, "queries": {"q": {"sql": "SELECT 1", "copies": 9}}},
        {**SHOP, "queries": {"q": {"sql": "SELECT 1", "sink": {"type": "webhook"}}}},
    ],
)
def test_the_schema_refuses_what_towpath_refuses(content: dict[str, Any], takes: Any, tmp_path: Path) -> None:
    with pytest.raises(fastjsonschema.JsonSchemaException):
        takes(content)
    (tmp_path / "job.yaml").write_text(json.dumps(content))
    with pytest.raises(job.JobError):
        job.load(tmp_path / "job.yaml")


def test_defaults_are_as_one_writes_them() -> None:
    made = schema()
    defaults = {key: value.get("default") for key, value in made["properties"].items()}
    assert (defaults["trigger"], defaults["carriers"]) == ("1 second", "auto")
    kinds = made["$defs"]
    assert kinds["ConnectNode"]["properties"]["lost_after"]["default"] == "15 seconds"
    assert kinds["ResultsDef"]["properties"]["retention"]["default"] == "7 days"
    assert kinds["AuctionSource"]["properties"]["start"]["default"] == "2026-01-01T00:00:00Z"
    assert "x-unit" not in json.dumps(made)


# --- the site --------------------------------------------------------------------------------------------------------


def test_the_pages_build_and_fetch_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    fetched = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=[\"']?(?:https?:)?//|<link[^>]*\shref=[\"']?(?:https?:)?//")
    assert [(page.name, found[0]) for page in pages if (found := fetched.search(page.read_text()))] == []
    for style in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"@import\s+[\"'u]|url\([\"']?(?:https?:)?//", style.read_text()), style.name


def test_every_page_is_in_the_menu() -> None:
    menu = set(re.findall(r": ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= menu
    assert menu - pages == {"ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md"}


def test_bash_reads_the_commands() -> None:
    commands = "\n".join(text for name, text in steps() if not name)
    subprocess.run(["bash", "-n", "-c", commands], check=True)
