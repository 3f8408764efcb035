"""The guide and the examples: in an installed package beside this file, else in the repository around it."""

from __future__ import annotations

from pathlib import Path

from towpath.errors import Mistake, UnknownNameError


def folder() -> Path:
    """Where docs/ and examples/ are."""
    installed = Path(__file__).with_name("guide_pages")
    return installed if installed.is_dir() else Path(__file__).parents[2]


def pages() -> dict[str, Path]:
    """All pages by their names, those of the reader's guide first."""
    docs = folder() / "docs"
    found = [*sorted(docs.glob("*.md")), *sorted(docs.glob("*/*.md"))]
    return {str(path.relative_to(docs).with_suffix("")): path for path in found if path.name != "README.md"}


def page(name: str) -> Path:
    """Raises UnknownNameError."""
    found = pages()
    wanted = name.removeprefix("docs/").removesuffix(".md").lower()
    if wanted in found:
        return found[wanted]
    from towpath.config.settings import close_to

    close = close_to(wanted, found)
    hint = f"did you mean {close}?" if close else "`towpath docs` lists the pages"
    raise UnknownNameError(str(Mistake("", f"there is no page {name!r} in the guide", hint)))


def title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return next((line[2:].strip() for line in file if line.startswith("# ")), path.stem)
