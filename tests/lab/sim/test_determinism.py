from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.sim.cases import digest, everything, pair, spread
from towpath.lab.sim import simulate


def elsewhere(**variables: str) -> str:
    """The digest of the same run in another process."""
    folder = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(folder)} | variables
    command = [sys.executable, str(folder / "lab" / "sim" / "cases.py")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def here() -> str:
    return digest(everything())


def test_twice_the_same(here: str) -> None:
    assert digest(everything()) == here


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_same_in_another_process(here: str, hash_seed: str) -> None:
    assert elsewhere(PYTHONHASHSEED=hash_seed) == here


def test_compiled_is_plain(here: str) -> None:
    assert elsewhere(NUMBA_DISABLE_JIT="1") == here


def test_another_seed_is_another_run() -> None:
    assert digest(simulate(pair(), spread(), 1.0, seed=1)) != digest(simulate(pair(), spread(), 1.0, seed=2))
