"""Spark Connect servers of this machine as nodes that come and go with the load."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from towpath.config.nodes import ConnectNode
from towpath.runtime.carriers import Runtime
from towpath.spark import server


class LocalNodes:
    """Starts and stops in a thread of its own: a server takes ten seconds to answer."""

    def __init__(self, store: Path, cores: int, memory: str, runtime: Callable[[str, ConnectNode], Runtime]) -> None:
        """`runtime` makes that of a node that answers."""
        self.cores = cores
        self._memory = memory
        self._runtime = runtime
        # Several jobs of one user may scale at a time.
        self._prefix = hashlib.sha256(str(store.absolute()).encode()).hexdigest()[:8]
        self._running: dict[str, str] = {}  # addresses
        self._thread = ThreadPoolExecutor(1, "nodes")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._thread.shutdown(wait=True)
        for node in list(self._running):
            self._stop(node)

    def start(self, node: str) -> Future[None]:
        return self._thread.submit(self._start, node)

    def open(self, node: str) -> Runtime:
        """Of one that has been started."""
        definition = {"type": "connect", "address": self._running[node], "cores": self.cores}
        return self._runtime(node, ConnectNode.model_validate(definition))

    def stop(self, node: str) -> None:
        self._thread.submit(self._stop, node)

    def _start(self, node: str) -> None:
        name = self._name(node)
        known = server.servers().get(name)
        if known is None or not known.alive:  # one that a controller which died has left behind is taken over
            known = server.start(name, self.cores, self._memory, None, {}, lambda: None)
        self._running[node] = known.address

    def _stop(self, node: str) -> None:
        server.stop(self._name(node))
        self._running.pop(node, None)

    def _name(self, node: str) -> str:
        return f"{self._prefix}-{node}"
