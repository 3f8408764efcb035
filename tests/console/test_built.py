"""The pages in the package are those that the sources build."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import REPOSITORY

pytestmark = [pytest.mark.console, pytest.mark.timeout(300)]

SOURCES = REPOSITORY / "console"
SHIPPED = REPOSITORY / "src" / "towpath" / "console" / "static"


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_package_has_what_the_sources_build(tmp_path: Path) -> None:
    npx = ["npx", "--no-install"]
    subprocess.run([*npx, "tsc", "--noEmit"], cwd=SOURCES, check=True)
    subprocess.run([*npx, "vite", "build", "--outDir", str(tmp_path), "--logLevel", "error"], cwd=SOURCES, check=True)
    built, shipped = files(tmp_path), files(SHIPPED)
    assert built.keys() == shipped.keys(), "`make console` builds the pages again; commit what it makes"
    assert [name for name in built if built[name] != shipped[name]] == []
