"""Prints what happens in a running job while somebody waits for something."""

from __future__ import annotations

import time
from collections.abc import Callable

from towpath.cli.output import MESSAGES, clock_time
from towpath.service.client import Client
from towpath.service.messages import HistoryEntry, LookRequest

LOOK_S = 0.3


def follow(
    client: Client, after: int, concerns: Callable[[HistoryEntry], bool], done: Callable[[], bool], end_s: float | None
) -> bool:
    """Prints the entries of the history that concern somebody until it is done; says whether it was in time."""
    end = None if end_s is None else time.monotonic() + end_s
    while True:
        finished = done()  # asked first, so that its last step is printed too
        for entry in client.history(LookRequest(after=after)):
            after = entry.number
            if concerns(entry):
                MESSAGES.print(f"{clock_time(entry.at_us)} {entry.kind}: {entry.text}", soft_wrap=True)
        if finished:
            return True
        if end is not None and time.monotonic() > end:
            return False
        time.sleep(LOOK_S)


def newest(client: Client) -> int:
    """The last entry of the history there is."""
    return max((entry.number for entry in client.history(LookRequest(limit=1))), default=0)
