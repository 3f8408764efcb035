"""Where the service of a job listens, written down in the job's store for whoever may read it: its owner."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from towpath.config.nodes import is_loopback as is_loopback
from towpath.errors import ServiceError
from towpath.store import durable
from towpath.store.private import write_private

TOKEN_BYTES = 32


@dataclass(frozen=True)
class ServiceAddress:
    address: str  # http://127.0.0.1:<port>
    pid: int
    token: str = field(repr=False)
    reader_token: str = field(default="", repr=False)  # for the console: to look and to change nothing

    @property
    def alive(self) -> bool:
        """Whether the process still is there; a service that was killed could not take its file away."""
        try:
            with suppress(PermissionError):  # somebody else's, so it is there
                os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


@contextmanager
def written(file: Path, place: ServiceAddress) -> Iterator[None]:
    """The file is there as long as this lasts: complete, and readable by nobody else."""
    with durable.writing(file, lasting=False) as scratch:
        write_private(scratch, json.dumps(asdict(place)))
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def read(file: Path) -> ServiceAddress | None:
    """None if there is no service, or the one that wrote the file is dead."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except PermissionError:
        raise ServiceError(f"{file}: only its owner may command this service; ask as the user who started it") from None
    try:
        found = ServiceAddress(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise ServiceError(f"{file}: expected the file of a service: {error}; start the service again") from error
    return found if found.alive else None
