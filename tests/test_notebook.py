"""The example notebook, run as a notebook runs it: cell by cell, the last expression of each shown as HTML."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples/notebook.ipynb"

# In a process of its own, as a kernel is: cells change what belongs to a process.
KERNEL = """
import ast, json, sys

space = {}
shown = []
for number, source in enumerate(json.load(open(sys.argv[1]))):
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), f"cell {number}", "exec"), space)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), space)
        html = getattr(value, "_repr_html_", lambda: None)()
        if html is not None:
            shown.append([type(value).__name__, html])
print(json.dumps(shown))
"""


def sources() -> list[str]:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_it_is_kept_without_what_it_showed() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for source in sources():
        ast.parse(source)


@pytest.mark.spark
@pytest.mark.live
def test_it_runs_and_shows_plans_results_and_placements(tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text(json.dumps(sources()))
    run = [sys.executable, "-c", KERNEL, "cells.json"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    shown = json.loads(done.stdout.splitlines()[-1])
    assert [kind for kind, _ in shown] == [
        "Explained",
        "Frame",
        "DataFrame",
        "DataFrame",
        "DataFrame",
        "Frame",
        "Placement",
    ]
    plan, per_channel, *_, cheap, placement = [html for _, html in shown]
    assert "aggregate" in plan.lower()
    assert "<th>mean_price</th>" in per_channel and "per-channel: " in per_channel
    assert "<td" in cheap and "edge" in placement
