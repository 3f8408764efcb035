"""What the README shows is what towpath takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from towpath import job
from towpath.lang import parse

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_job_file_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "market.yaml").write_text(block)
    shown = job.load(tmp_path / "market.yaml")
    assert [parse(query.sql, shown.catalog, name).name for name, query in shown.queries.items()] == [
        "high-bids",
        "busy-auctions",
        "clocks",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_the_map_has_every_module() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    package = ROOT / "src" / "towpath"
    names = {p.stem for p in package.glob("*.py")} | {p.parent.name for p in package.glob("*/__init__.py")}
    assert [name for name in sorted(names - {"__init__"}) if f"`{name}" not in text] == []


def test_files_that_the_map_names_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text))
    assert len(named) > 30
    roots = (ROOT, ROOT / "src/towpath", ROOT / "src/towpath/control")
    assert [name for name in sorted(named) if not any((root / name).exists() for root in roots)] == []


@pytest.mark.parametrize("room", ["decide", "act"])
def test_the_page_of_control_has_every_file_of_its_rooms(room: str) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    page = text[text.index("### Inside `control`") : text.index("### By file")]
    files = {path.stem for path in (ROOT / "src/towpath/control" / room).glob("*.py")} - {"__init__"}
    assert [name for name in sorted(files) if f"`{name}`" not in page and f"{room}/{name}.py" not in page] == []
