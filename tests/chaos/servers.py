"""Two real Spark Connect servers, and what can be done to them."""

from __future__ import annotations

import os
import signal
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from tests.chaos.schedule import NODES

from towpath.spark import server
from towpath.spark.server import Server

QUICK_START = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
}


class Servers:
    """They outlive a schedule: starting one takes as long as all the rest of it."""

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}
        self._starting: dict[str, Future[Server]] = {}
        self._threads = ThreadPoolExecutor(len(NODES))

    @property
    def addresses(self) -> dict[str, str]:
        return {name: found.address for name, found in self._running.items()}

    def heal(self) -> None:
        """Those that are paused go on; those that were killed come back at their address in a while."""
        for name in NODES:
            known = self._running.get(name)
            if known is not None and known.alive:
                os.killpg(known.pid, signal.SIGCONT)
            elif name not in self._starting:
                port = int(known.address.rsplit(":", 1)[1]) if known else None
                self._starting[name] = self._threads.submit(
                    server.start, name, 1, "1g", port, QUICK_START, lambda: None
                )

    def wait_for_all(self) -> None:
        self.heal()
        wait(self._starting.values())
        self._take_over()

    def wait_for_one(self) -> None:
        """Without any node a job can not be started."""
        self.heal()
        if len(self._starting) == len(NODES):
            wait(self._starting.values(), return_when=FIRST_COMPLETED)
        self._take_over()

    def _take_over(self) -> None:
        for name in [name for name, starting in self._starting.items() if starting.done()]:
            self._running[name] = self._starting.pop(name).result()

    def send(self, name: str, number: signal.Signals) -> None:
        if (known := self._running.get(name)) is not None and known.alive:
            os.kill(known.pid, number)

    def stop(self) -> None:
        self._threads.shutdown()  # waits for those that are being started
        for name in server.servers():
            self.send(name, signal.SIGCONT)
            server.stop(name)
