"""Where everything of a job is kept: one folder, one running owner."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from towpath.errors import StoreError


@dataclass(frozen=True)
class Store:
    """
    <root>/lock                              held by the process that runs the job
    <root>/journal.sqlite                    every decision: queries, fragments, carriers
    <root>/carriers/<carrier>/checkpoint     Spark's own
    <root>/carriers/<carrier>/assignments.arrow
    <root>/carriers/<carrier>/<input>/       index of files, ticks
    <root>/results/<carrier>/                the results log (docs/results.md)
    <root>/sinks/<query>.json                how far a query's own sink was fed
    <root>/log/                              towpath.log, spark.log
    """

    root: Path

    @property
    def journal(self) -> Path:
        return self.root / "journal.sqlite"

    @property
    def logs(self) -> Path:
        return self.root / "log"

    @property
    def drain(self) -> Path:
        return self.root / "drain"

    def carrier(self, carrier: str) -> Path:
        return self.root / "carriers" / carrier

    def checkpoint(self, carrier: str) -> Path:
        return self.carrier(carrier) / "checkpoint"

    def assignments(self, carrier: str) -> Path:
        return self.carrier(carrier) / "assignments.arrow"

    def results(self, carrier: str) -> Path:
        return self.root / "results" / carrier

    def sink(self, query: str) -> Path:
        return self.root / "sinks" / f"{query}.json"

    def lock(self) -> IO[str]:
        """Takes the store for this process until the file is closed; the kernel lets go of it when the process dies."""
        self.root.mkdir(parents=True, exist_ok=True)
        file = (self.root / "lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            file.close()
            raise StoreError(
                f"{self.root}: another towpath runs on this store (process {owner}); stop it first, "
                "or give this job its own store"
            ) from None
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        return file
