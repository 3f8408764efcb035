from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from .broker import Broker

FETCH = Path(__file__).parents[2] / "scripts" / "kafka.sh"


@pytest.fixture(scope="session")
def jars() -> Path:
    """Folders `broker` and `connector`, fetched the first time."""
    got = subprocess.run([FETCH, pyspark.__version__], capture_output=True, text=True)
    if got.returncode:
        reason = got.stderr.strip().splitlines()[-1]
        if os.environ.get("TOWPATH_KAFKA") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = Path(got.stdout.strip())
    version = (folder / "connector" / "version").read_text().strip()
    if version != pyspark.__version__:
        warnings.warn(f"Spark {pyspark.__version__} is tested with the connector of {version}", stacklevel=1)
    return folder


@pytest.fixture(scope="session")
def broker(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(jars / "broker", tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.kill()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these need a broker, a process of its own."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.live)
