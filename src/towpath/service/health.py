"""Whether the service answers, and whether its job works: for those who watch over processes, without a token.

They are told what works and no name of anything. However often they ask, the job is asked once in a while.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from towpath.errors import ServiceError
from towpath.service.messages import Readiness
from towpath.service.verbs import Verbs

LIVE, READY = PATHS = ("/healthz", "/readyz")
SAFE = ("GET", "HEAD")
TURN_S = 10.0  # within which the loop has to turn; it stands still while Spark starts a carrier
GOOD_FOR_S = 2.0  # what was found

Ask = Callable[[Callable[[], Any]], Awaitable[Any]]


def is_open(method: str, path: str) -> bool:
    """Whether everybody may ask for it."""
    return method in SAFE and path in PATHS


class Health:
    def __init__(self, verbs: Verbs, ask: Ask, turn_s: float = TURN_S) -> None:
        """`ask` has the loop answer."""
        self._verbs = verbs
        self._ask = ask
        self._turn_s = turn_s
        self._lock = asyncio.Lock()
        self._found = Readiness(False, "not known")
        self._found_at = -float("inf")

    @property
    def routes(self) -> list[Route]:
        return [Route(LIVE, self._live), Route(READY, self._ready)]

    async def _live(self, _: Request) -> Response:
        return JSONResponse({"alive": True})

    async def _ready(self, _: Request) -> Response:
        async with self._lock:
            if time.monotonic() - self._found_at >= GOOD_FOR_S:
                self._found = await self._look()
                self._found_at = time.monotonic()
        return JSONResponse(dataclasses.asdict(self._found), 200 if self._found.ready else 503)

    async def _look(self) -> Readiness:
        try:
            found = await asyncio.wait_for(self._ask(self._verbs.ready), self._turn_s)
        except TimeoutError:
            return Readiness(False, f"has not turned for {self._turn_s:g} seconds")
        except ServiceError:
            return Readiness(False, "is stopping")
        assert isinstance(found, Readiness), "it is what the verb answers"
        return found
