"""Who is logged in: a random cookie for a token, of which only a hash is kept, in a file of the store."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from towpath.store import durable

log = logging.getLogger(__name__)

LASTS_S = 12 * 3600
COOKIE_BYTES = 32
MOST = 64  # sessions; the one that ends first goes when another begins


class Role(StrEnum):
    READER = "reader"  # looks at everything and changes nothing
    OPERATOR = "operator"


@dataclass(frozen=True)
class Session:
    role: Role
    ends: float  # by the wall clock


class Sessions:
    """They outlive the service: whoever is logged in stays so when it is started again."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._now = now
        self._lock = threading.Lock()
        self._known = self._read()

    def begin(self, role: Role) -> str:
        """A new session; returns what its cookie says."""
        cookie = secrets.token_urlsafe(COOKIE_BYTES)
        with self._lock:
            self._drop_ended()
            while len(self._known) >= MOST:
                del self._known[min(self._known, key=lambda known: self._known[known].ends)]
            self._known[_hash(cookie)] = Session(role, self._now() + LASTS_S)
            self._write()
        return cookie

    def find(self, cookie: str | None) -> Session | None:
        """None if there is no such session, or it has ended."""
        found = None if cookie is None else self._known.get(_hash(cookie))
        return found if found is not None and found.ends > self._now() else None

    def end(self, cookie: str | None) -> None:
        with self._lock:
            if cookie is not None and self._known.pop(_hash(cookie), None) is not None:
                self._write()

    def _drop_ended(self) -> None:
        self._known = {known: s for known, s in self._known.items() if s.ends > self._now()}

    def _read(self) -> dict[str, Session]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return {known: Session(Role(said["role"]), float(said["ends"])) for known, said in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            log.warning("%s: expected the sessions of the console, so everybody has to log in: %s", self._file, error)
            return {}

    def _write(self) -> None:
        """A session that cannot be written down still holds until the service ends."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with durable.writing(self._file, lasting=False) as scratch:
                scratch.unlink(missing_ok=True)  # one that was left could have any mode
                mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                with os.fdopen(os.open(scratch, mode, 0o600), "w", encoding="utf-8") as out:
                    json.dump({known: asdict(session) for known, session in self._known.items()}, out)
        except OSError as error:
            log.warning("%s: the sessions of the console could not be written down: %s", self._file, error)


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()
