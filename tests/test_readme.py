"""What the README shows is what towpath takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from towpath import job
from towpath.lang import parse

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = sorted((ROOT / "docs/architecture").glob("*.md"))


def test_the_job_file_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "market.yaml").write_text(block)
    shown = job.load(tmp_path / "market.yaml")
    assert [parse(query.sql, shown.catalog, name).name for name, query in shown.queries.items()] == [
        "high-bids",
        "busy-auctions",
        "clocks",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text())
    assert [link for link in links if "://" not in link[0] and not _leads_somewhere(page, *link)] == []


def _leads_somewhere(page: Path, target: str, anchor: str) -> bool:
    found = page.parent / target if target else page
    if not anchor or not found.is_file():
        return found.exists()
    headings = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
    return anchor in {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_the_map_has_every_module() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    package = ROOT / "src" / "towpath"
    names = {p.stem for p in package.glob("*.py")} | {p.parent.name for p in package.glob("*/__init__.py")}
    assert [name for name in sorted(names - {"__init__"}) if f"`{name}" not in text] == []


def test_files_that_the_map_names_are_there() -> None:
    text = "".join(page.read_text() for page in [ROOT / "ARCHITECTURE.md", *ROOMS])
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text))
    assert len(named) > 30
    roots = (ROOT, ROOT / "src/towpath", ROOT / "src/towpath/control")
    assert [name for name in sorted(named) if not any((root / name).exists() for root in roots)] == []


@pytest.mark.parametrize("room", ["decide", "act"])
def test_the_page_of_control_has_every_file_of_its_rooms(room: str) -> None:
    page = (ROOT / "docs/architecture/control.md").read_text()
    files = {path.stem for path in (ROOT / "src/towpath/control" / room).glob("*.py")} - {"__init__"}
    assert [name for name in sorted(files) if f"`{name}`" not in page and f"{room}/{name}.py" not in page] == []
