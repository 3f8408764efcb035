"""Something that changes while it is looked at: a view that is redrawn on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from rich.console import RenderableType
from rich.live import Live

from towpath.cli.output import MESSAGES

REDRAW_S = 0.5


class LiveView:
    def __init__(self, line_every_s: float) -> None:
        self._live = Live(console=MESSAGES, auto_refresh=False, transient=True) if MESSAGES.is_terminal else None
        self._every_s = REDRAW_S if self._live else line_every_s
        self._shown: float | None = None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live:
            self._live.stop()

    @property
    def due(self) -> bool:
        return self._shown is None or time.monotonic() - self._shown >= self._every_s

    def show(self, view: Callable[[], RenderableType], line: Callable[[], str]) -> None:
        """Only what is needed here is made: the view or the line."""
        self._shown = time.monotonic()
        if self._live:
            self._live.update(view(), refresh=True)
        else:
            MESSAGES.print(line(), soft_wrap=True)
