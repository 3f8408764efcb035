"""For mkdocs: pages beside docs/ are pages of the site, too, and links lead to where they are there.

The Markdown is written for whoever reads the repository; links to code and examples have no place in the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
BESIDE = ("ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md")
LINK = re.compile(r"\[(?P<text>[^\]\[]*)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name in BESIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = Path(page.file.abs_src_path or "")

    def led(link: re.Match[str]) -> str:
        target = link["target"]
        if "://" in target:
            return link[0]
        path = (source.parent / target).resolve()
        if path.is_relative_to(ROOT / "docs") and not path.is_dir():
            uri = path.relative_to(ROOT / "docs").as_posix()
        elif path.parent == ROOT and path.name in BESIDE:
            uri = path.name
        else:
            assert path.exists(), f"{source}: {target} is not there"
            return link["text"]
        here = posixpath.dirname(page.file.src_uri)
        return f"[{link['text']}]({posixpath.relpath(uri, here or '.')}{link['anchor'] or ''})"

    return LINK.sub(led, markdown)
