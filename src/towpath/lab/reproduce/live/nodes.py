"""Spark Connect servers of this machine as the papers' machines, each with a share of a core."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from towpath.config.nodes import ConnectNode, NodeDef
from towpath.lab.reproduce.report import Progress
from towpath.spark import server
from towpath.spark.capped import capped
from towpath.spark.server import Server

MEMORY = "3g"
CAPPED = (
    "Every node is a Spark Connect server on one machine, held to a share of a core while it is measured: as soon "
    "as it has used more CPU time it is stopped (SIGSTOP) until its share has caught up. Starting is neither "
    "measured nor capped. Their JVMs use the first compiler only: on a share of a core the second one takes most of it."
)


@dataclass(frozen=True)
class Machines:
    """The nodes of an experiment, by name, and a folder for everything else."""

    servers: Mapping[str, Server]
    folder: Path

    @property
    def names(self) -> Sequence[str]:
        return list(self.servers)

    def definitions(self, names: Sequence[str]) -> dict[str, NodeDef]:
        """For a job file. One core each, so that no state is split: a share of it is all they get."""
        return {
            name: ConnectNode.model_validate({"type": "connect", "address": self.servers[name].address, "cores": 1})
            for name in names
        }

    @contextmanager
    def capped(self, names: Sequence[str], share: float) -> Iterator[None]:
        with capped({self.servers[name].pid: share for name in names}):
            yield


@contextmanager
def machines(count: int, progress: Progress) -> Iterator[Machines]:
    names = [f"reproduce-{os.getpid()}-{n}" for n in range(1, count + 1)]
    progress(f"starting {count} nodes", 0.0)
    with (
        tempfile.TemporaryDirectory(prefix="towpath-reproduce-", ignore_cleanup_errors=True) as folder,
        server.temporary(names, cores=1, memory=MEMORY) as started,
    ):
        yield Machines({f"n{n}": found for n, found in enumerate(started.values(), start=1)}, Path(folder))
