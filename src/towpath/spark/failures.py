"""What Spark says of a failure, in a line, and how long a carrier that failed is left alone."""

from __future__ import annotations

import re

from towpath.errors import FragmentFailed

# A carrier that fails is started again after these pauses, as long as no micro-batch succeeds between them. Then it is
# found out why it fails (control/quarantine.py).
PAUSES_S = (0.5, 2.0)
BUSY_S = 20.0
# A Python process of the carrier took longer than the 10 s that Spark allows: the node is busy, the carrier is not ill.
BUSY = "Python worker failed to connect back"

# What no query is to blame for; who looks for one at fault would find an innocent.
OUTSIDE = re.compile(
    "No space left on device|Disk quota exceeded|Read-only file system|Input/output error|Stale file handle"
    f"|Too many open files|Cannot allocate memory|OutOfMemoryError|{BUSY}"
)


class StoppedByOthers(Exception):
    """For instance in Spark's web page, or by the last words of a controller that was killed."""

    def __init__(self) -> None:
        super().__init__("somebody else stopped it")


def pause_after(times: int, error: BaseException) -> float | None:
    """How long a carrier that has failed so often in a row is left alone; None to give it up."""
    if times <= len(PAUSES_S):
        return PAUSES_S[times - 1]
    return BUSY_S if BUSY in str(error) else None


def is_outside(error: BaseException) -> bool:
    """Whether a failure surely comes from the machine, the storage, or from others."""
    return isinstance(error, OSError | StoppedByOthers) or OUTSIDE.search(str(error)) is not None


def blamed(error: BaseException) -> int | None:
    """The fragment whose expression could not be calculated, as a worker has said."""
    found = re.search(rf"{FragmentFailed.__name__}: fragment (\d+) fails", str(error))
    return None if found is None else int(found[1])


def headline(error: BaseException) -> str:
    """What a user can make something of: our own message if it comes from a Python worker, else Spark's first line.

    If that only announces a stack trace, the last exception in it: what all the others come from.
    """
    text = str(error).strip()
    ours = re.search(r"^towpath\.errors\.\w+: (.+)$", text, re.MULTILINE)
    first = text.partition("\n")[0]
    if ours or "Traceback (" not in first:
        return ours[1] if ours else first
    causes = re.findall(r"^(?:Caused by: )?(?:[\w.]+\.)?(\w+(?:Error|Exception): .+)$", text, re.MULTILINE)
    return causes[-1] if causes else first.partition("Traceback (")[0].strip(" :")


def reason(error: Exception) -> str:
    """In a line. gRPC prints a record of several, in which one says why."""
    text = str(error)
    details = re.search(r'details = "(.+)"', text)
    return details[1] if details else text.partition("\n")[0]
