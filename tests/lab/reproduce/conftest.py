from __future__ import annotations

import pytest

from towpath.lab.reproduce import runs


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one takes longer to start than tiny simulations to run."""
    monkeypatch.setattr(runs, "_processors", lambda: 1)
