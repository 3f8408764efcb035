"""A real Apache Kafka on loopback: one process that is broker and controller at once, from jars of Maven Central."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

PATIENCE_S = 60
PROPERTIES = """
process.roles=broker,controller
node.id=1
listeners=CLIENT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
inter.broker.listener.name=CLIENT
listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=1000
"""


class Broker:
    """Its data and its address stay the same when it is killed and started again."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._jars = jars
        self._log = folder / "kafka.log"
        self._properties = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self.port, controller = _free_ports()
        self._properties.write_text(PROPERTIES.format(port=self.port, controller=controller, folder=folder))
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # With the sign of equality, since one identifier in 64 begins with a dash and would be taken for an option.
        arguments = ["format", f"--cluster-id={cluster}", "--config", str(self._properties)]
        subprocess.run(self._java("kafka.tools.StorageTool", *arguments), check=True, capture_output=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = self._java("kafka.Kafka", str(self._properties))
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._log.parent)
        end = time.monotonic() + PATIENCE_S
        while not self._answers():
            assert self._process.poll() is None, f"the broker stopped: {self._log.read_text()}"
            assert time.monotonic() < end, f"the broker does not answer: {self._log.read_text()}"
            time.sleep(0.1)

    def kill(self) -> None:
        """As a power cut does it: nothing is flushed, nothing is handed over."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _java(self, main: str, *arguments: str) -> list[str]:
        java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        return [str(java), "-Xmx256m", *quick, "-cp", str(self._jars / "*"), main, *arguments]


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
