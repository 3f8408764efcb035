"""A node that is a whole cluster: a standalone master and two workers behind one Spark Connect endpoint."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from towpath.api.running import Towpath
from towpath.config.nodes import ConnectNode
from towpath.lab.testing.drawing import plain_workload
from towpath.lab.testing.running import run
from towpath.spark import server

pytestmark = [pytest.mark.spark, pytest.mark.long]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
QUICK = "-XX:TieredStopAtLevel=1"
SETTINGS = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": "700m",
    "spark.executor.cores": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
PATIENCE_S = 60


@dataclass
class Cluster:
    folder: Path
    address: str
    workers: list[subprocess.Popen[bytes]]

    def kill_a_worker(self) -> None:
        """Its executor, a process of its own, ends when it finds out."""
        worker = self.workers.pop()
        worker.kill()
        worker.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    port = _free_port()
    address = f"spark://127.0.0.1:{port}"
    master = _launch(folder, "master", "org.apache.spark.deploy.master.Master", "--port", str(port))
    _wait_for_port(port, master)
    worker = ["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "800m"]
    workers = [_launch(folder, f"worker{n}", *worker, "--work-dir", str(folder / f"work{n}"), address) for n in (1, 2)]
    made = Cluster(folder, address, workers)
    yield made
    for process in [*made.workers, master]:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def node(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectNode]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        started = server.start("cluster", 2, "1g", None, SETTINGS, lambda: None, master=cluster.address)
        yield ConnectNode.model_validate({"type": "connect", "address": started.address, "cores": 2})
        server.stop("cluster")


def test_a_cluster_that_loses_a_worker_equals_the_batch(cluster: Cluster, node: ConnectNode, tmp_path: Path) -> None:
    workload = plain_workload(3)
    phases = len(workload.recording.chunks)
    assert phases > 2

    def lose_a_worker(running: Towpath, phase: int) -> None:
        if phase == phases // 2:
            assert len(executors(cluster)) == 2, "both workers have taken part"
            cluster.kill_a_worker()

    outcome = run(workload, tmp_path, {"cluster": node}, lose_a_worker)
    assert not outcome.differences
    assert outcome.rows


def executors(cluster: Cluster) -> list[Path]:
    """A worker gives each executor a folder in its own working directory."""
    return list(cluster.folder.glob("work?/app-*/*"))


def _launch(folder: Path, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [str(SPARK_CLASS), main, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
    with (folder / f"{name}.log").open("wb") as log:
        env = os.environ | {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK}
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=env)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, "the master stopped"
        time.sleep(0.2)
    raise AssertionError("the master does not answer")
