from __future__ import annotations

from pathlib import Path

import pytest

import towpath.lab.sim


@pytest.fixture(scope="session", autouse=True)
def _no_stale_code() -> None:
    """Numba keeps compiled functions, and does not notice when one that they call changed in another file."""
    folder = Path(towpath.lab.sim.__file__).parent
    compiled = [file for file in folder.glob("*.py") if file.name == "tables.py" or "@njit" in file.read_text()]
    newest = max(file.stat().st_mtime for file in compiled)
    for kept in (folder / "__pycache__").glob("*.nbi"):
        if kept.stat().st_mtime < newest:
            kept.unlink()
