"""Parts of the loop that runs a job may fail, for whatever reason, without ending it.

What fails is logged with its trace, recorded in the history once, shown by `status`, and done again the next time. It
ends the job only where going on would be a lie: what was decided cannot be written down (StoreError), or Spark is gone
for good (RuntimeFailure).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from towpath.control.state.history import EventKind
from towpath.errors import RuntimeFailure, StoreError

log = logging.getLogger(__name__)

ENDS_THE_JOB = (StoreError, RuntimeFailure)


class Guard:
    def __init__(self, record: Callable[[EventKind, str], None]) -> None:
        self._record = record
        self._troubles: dict[str, str] = {}
        self._times: dict[str, int] = {}  # in a row

    @property
    def troubles(self) -> list[str]:
        """What failed the last time that it was done."""
        return [f"{part}: {why}" for part, why in self._troubles.items()]

    @contextmanager
    def around(self, part: str, *, at_most: int | None = None) -> Iterator[None]:
        """What fails inside is recorded and over with; after `at_most` failures in a row it ends the job."""
        try:
            yield
        except ENDS_THE_JOB:
            raise
        except Exception as error:
            self._note(part, error)
            if at_most is not None and self._times[part] >= at_most:
                raise RuntimeFailure(f"{part} failed {at_most} times in a row: {_line(error)}") from error
        else:
            self._troubles.pop(part, None)
            self._times.pop(part, None)

    def note(self, part: str, why: str | None) -> None:
        """How somebody fares who looks after himself; None: well."""
        if why is None:
            self._troubles.pop(part, None)
        elif self._troubles.get(part) != why:
            self._troubles[part] = why
            self._record(EventKind.FAULT, f"{part} failed, and is tried again: {why}; the log has the details")

    def _note(self, part: str, error: Exception) -> None:
        self._times[part] = self._times.get(part, 0) + 1
        why = _line(error)
        if self._troubles.get(part) != why:
            log.error("%s failed, and is tried again: %s", part, why, exc_info=error)
        self.note(part, why)


def _line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
