"""Where everything of a job is kept: one folder, one running owner."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import threading
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from towpath.errors import StoreError
from towpath.schema import SchemaClass, Stream, base_class
from towpath.store import durable
from towpath.store.private import private_folder

KEY_BYTES = 32

_taking_over = threading.Lock()


@dataclass(frozen=True)
class Store:
    """
    <root>/lock                              held by the process that runs the job
    <root>/journal.sqlite                    every decision: queries, fragments, carriers
    <root>/key                               makes names that nobody else can guess
    <root>/service.json                      where the service of the job listens, while there is one
    <root>/console.json                      who is logged in to the web console
    <root>/carriers/<carrier>/assignments/   the assignment table
    <root>/carriers/<carrier>/<input>/ticks  event times for inputs that are silent
    <root>/carriers/<carrier>/e<epoch>/      all that the carrier itself writes:
        checkpoint                           Spark's own
        <input>/files                        index of the files of a feed
        tables/<table>/<batch>/<version>     which version of a table a micro-batch has
        results                              the results log (docs/results.md)
    <root>/trials/<carrier>/                 a copy of what a carrier that fails starts from, while it is tried out
    <root>/tables/<table>/                   the versions of a reference table
    <root>/links/<class>/<link>.json         who makes a derived stream, for the inputs that read it
    <root>/intake/<folder>/                  files of a folder that Spark's own reader is given (streams/intake.py)
    <root>/rejected/                         rows and files that were not taken in (streams/rejected.py)
    <root>/sinks/<query>.json                how far a query's own sink was fed
    <root>/situation.yaml                    what was measured, as a placement problem
    <root>/log/                              towpath.log, spark.log
    """

    root: Path

    @property
    def journal(self) -> Path:
        return self.root / "journal.sqlite"

    @property
    def key(self) -> bytes:
        """Nothing for a store that was made before there were keys: what is named without one keeps its name."""
        try:
            return (self.root / "key").read_bytes()
        except FileNotFoundError:
            return b""

    @property
    def service(self) -> Path:
        return self.root / "service.json"

    @property
    def console(self) -> Path:
        return self.root / "console.json"

    @property
    def situation(self) -> Path:
        return self.root / "situation.yaml"

    @property
    def logs(self) -> Path:
        return self.root / "log"

    @property
    def drain(self) -> Path:
        return self.root / "drain"

    @property
    def rejected(self) -> Path:
        return self.root / "rejected"

    @property
    def intake(self) -> Path:
        return self.root / "intake"

    def carrier(self, carrier: str) -> Path:
        return self.root / "carriers" / carrier

    def trial(self, carrier: str) -> Path:
        return self.root / "trials" / carrier

    def drop_trials(self) -> None:
        """Those that a process left which was killed."""
        shutil.rmtree(self.root / "trials", ignore_errors=True)

    def epoch(self, carrier: str, epoch: int) -> Path:
        return self.carrier(carrier) / f"e{epoch}"

    def open_epoch(self, carrier: str, epoch: int) -> Path:
        """Where a carrier writes from now on; what it wrote in the epoch before is there.

        The folder gets a new name in one step. A process that was taken for dead knows the old name only: whatever
        it still writes, it writes where nobody looks.
        """
        folder = self.epoch(carrier, epoch)
        with _taking_over:
            before = sorted(_epochs(self.carrier(carrier)))
            if before and before[-1] > epoch:
                raise StoreError(f"{folder}: carrier {carrier} is in epoch {before[-1]} by now")
            if epoch not in before:
                if before:
                    os.rename(self.epoch(carrier, before[-1]), folder)
                else:
                    folder.mkdir(parents=True)
            for old in before:
                if old < epoch:
                    shutil.rmtree(self.epoch(carrier, old), ignore_errors=True)
        for index in folder.glob("*/files"):
            # It is appended to in place, and the other process may have it open.
            with durable.writing(index) as copy:
                shutil.copyfile(index, copy)
        for unfinished in (folder / "checkpoint").glob("*/.*.tmp"):
            # Spark killed while it wrote its first line of all: it would take the checkpoint for that of another query.
            unfinished.unlink(missing_ok=True)
        return folder

    def assignments(self, carrier: str) -> Path:
        return self.carrier(carrier) / "assignments"

    def results(self, carrier: str) -> Path:
        """The results log of a carrier; it lies in the folder of the newest epoch."""
        return self.carrier(carrier)

    @property
    def result_logs(self) -> list[Path]:
        return sorted((self.root / "carriers").glob("*"))

    def remove_others(self, carriers: Collection[str]) -> None:
        """Removes the folders of carriers that are none of these; also those that a crash has left behind."""
        for folder in self.result_logs:
            if folder.name not in carriers:
                shutil.rmtree(folder, ignore_errors=True)

    def links(self, schema_class: SchemaClass) -> Path:
        """The links that one input can read together."""
        return self.root / "links" / hashlib.sha256(repr(base_class(schema_class)).encode()).hexdigest()[:16]

    def table(self, table: Stream) -> Path:
        """Where the versions of a reference table are kept. With other columns it is another table."""
        columns = hashlib.sha256(repr(table.schema_class).encode()).hexdigest()[:8]
        return self.root / "tables" / f"{table.name}-{columns}"

    def pins(self, table: Path) -> list[Path]:
        """Where carriers note which version of a table their micro-batches have."""
        return [*self.root.glob(f"carriers/*/e*/tables/{table.name}"), *self.root.glob(f"trials/*/tables/{table.name}")]

    def sink(self, query: str) -> Path:
        return self.root / "sinks" / f"{query}.json"

    @property
    def sinks(self) -> list[Path]:
        return sorted((self.root / "sinks").glob("*.json"))

    def owner(self) -> str | None:
        """The process that holds the store; None if nobody does."""
        try:
            with (self.root / "lock").open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return None
        except BlockingIOError:
            return (self.root / "lock").read_text().strip() or "unknown"
        return None

    def lock(self) -> IO[str]:
        """Takes the store for this process until the file is closed; the kernel lets go of it when the process dies."""
        private_folder(self.root)
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
        if not self.journal.exists() and not self.key:
            durable.write_bytes(self.root / "key", secrets.token_bytes(KEY_BYTES))
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        return file


def _epochs(folder: Path) -> list[int]:
    found = (re.fullmatch(r"e(\d+)", path.name) for path in folder.glob("e*"))
    return [int(match[1]) for match in found if match]
