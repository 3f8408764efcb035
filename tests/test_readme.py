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
