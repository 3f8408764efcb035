"""The layers of ARCHITECTURE.md, as the contracts in pyproject.toml state them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    # In a process of its own: import-linter takes over logging.
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-logo", "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        cwd=tree / "src",
        capture_output=True,
        text=True,
    )


def test_every_module_keeps_to_its_layer() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line", "said"),
    [
        ("lang/extra.py", "import towpath.plan", "towpath.lang is not allowed to import towpath.plan"),
        ("lang/extra.py", "import towpath.config.settings", "towpath.lang is not allowed to import towpath.config"),
        ("results/extra.py", "import towpath.lang", "towpath.results is not allowed to import towpath.lang"),
        ("errors.py", "import towpath.schema", "towpath.errors is not allowed to import towpath.schema"),
        ("plan/extra.py", "import pyspark", "towpath is not allowed to import pyspark"),
        ("results/extra.py", "import sqlglot", "towpath is not allowed to import sqlglot"),
        ("control/decide/extra.py", "import time", "towpath.control.decide is not allowed to import time"),
        ("control/decide/extra.py", "import towpath.store.layout", "is not allowed to import towpath.store"),
        (
            "control/decide/extra.py",
            "import towpath.control.act.engine",
            "is not allowed to import towpath.control.act",
        ),
        (
            "control/state/extra.py",
            "from pathlib import Path",
            "towpath.control.state is not allowed to import pathlib",
        ),
        ("verify/extra.py", "import towpath.plan", "towpath.verify is not allowed to import towpath.plan"),
        ("api/extra.py", "import towpath.lab.demo", "towpath.api is not allowed to import towpath.lab"),
        ("control/act/extra.py", "import scipy.optimize", "towpath is not allowed to import scipy"),
        ("cli/extra.py", "import matplotlib.figure", "towpath is not allowed to import matplotlib"),
        ("planners/extra.py", "import numba", "towpath is not allowed to import numba"),
        ("api/extra.py", "import towpath.planners.sqpr", "towpath.api is not allowed to import highspy"),
        ("lab/demo/extra.py", "import towpath.lab.sim", "towpath.lab.demo is not allowed to import numba"),
        ("nowhere.py", "", "not listed as layers"),
    ],
)
def test_a_breach_is_found(tmp_path: Path, module: str, line: str, said: str) -> None:
    package = tmp_path / "src" / "towpath"
    shutil.copytree(ROOT / "src" / "towpath", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / module).write_text(f"{line}\n")
    result = lint(tmp_path)
    assert result.returncode == 1
    assert said in result.stdout
