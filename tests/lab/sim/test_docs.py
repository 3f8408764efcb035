from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_the_example_of_the_documentation_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "simulation.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(code.replace("seconds=60", "seconds=12"), names)
    assert names["outcome"].seconds == 12
    assert names["outcome"].lost["on_links"] > 0
