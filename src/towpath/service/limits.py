"""What nobody may take from the service: its descriptors, its memory, and answers meant for another page.

uvicorn waits for ever for a request that was half sent, and for an answer to be read. So connections that owe a request
have a time, those that do not read their answer too, and when there are too many, the one that has owed either the
longest goes: whoever sends a whole request and reads its answer is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from towpath.config.nodes import is_loopback
from towpath.errors import ServiceError
from towpath.service.messages import dump_error

MOST_CONNECTIONS = 128
HEADER_S = 10.0  # from when a connection is made, or an answer was given, to the last line of the next header
BODY_S = 60.0
UNREAD_S = 20.0  # in which at least LEAST_READ of an answer has to be read, or all that is left
LEAST_READ = 16 * 1024  # bytes
MOST_BODY = 16 * 1024 * 1024  # bytes: 160 queries as long as a query can be, or a hundred thousand usual ones

# Connections that owe a request, or do not read, the longest first.
_owing: WeakKeyDictionary[ServerState, dict[Connection, None]] = WeakKeyDictionary()


class Connection(H11Protocol):
    """One that owes a request for a limited time, and reads its answers."""

    _deadline: asyncio.TimerHandle | None = None
    _answered = False  # all of the answer was written, and some of it is still to be read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._owe()
        if len(self.connections) > MOST_CONNECTIONS:
            longest = next(iter(self._others), self)
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._owe_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        answering = self.cycle
        super().data_received(data)
        if self.cycle is not answering:
            self._begin()

    def pause_writing(self) -> None:
        """More is written than is read. Called in the middle of an answer, and never twice in a row."""
        super().pause_writing()
        self._owe_nothing()
        self._others[self] = None
        self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._owe_nothing()
        if self._answered:
            self._owe()

    def _expect_reading(self) -> None:
        left = self.transport.get_write_buffer_size()

        def look() -> None:
            if self.transport.get_write_buffer_size() > left - LEAST_READ:
                self.transport.abort()
            else:
                self._expect_reading()

        self._deadline = self.loop.call_later(UNREAD_S, look)

    def on_response_complete(self) -> None:
        answered = self.cycle
        self._answered = True
        if not self.flow.write_paused:
            self._owe()
        super().on_response_complete()  # which may begin with the next request
        if self.cycle is not answered:
            self._begin()

    def _begin(self) -> None:
        """A request has come."""
        self._answered = False
        if not self.flow.write_paused:
            self._owe_nothing()

    @property
    def _others(self) -> dict[Connection, None]:
        return _owing.setdefault(self.server_state, {})

    def _owe(self) -> None:
        self._owe_nothing()
        self._others[self] = None
        self._deadline = self.loop.call_later(HEADER_S, self.transport.abort)

    def _owe_nothing(self) -> None:
        self._others.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _TooLarge(Exception):
    pass


class BoundedBody:
    """Refuses a body that is too large before it is read, and one that is too slow when its time is over."""

    def __init__(self, app: ASGIApp, most: int = MOST_BODY, patience_s: float = BODY_S) -> None:
        self._app = app
        self._most = most
        self._patience_s = patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if not said.isdigit() or int(said[:20]) > self._most:
            await self._too_large()(scope, receive, send)
            return
        try:
            body = await asyncio.wait_for(self._read(receive), self._patience_s)
        except TimeoutError:
            message = f"expected the whole request within {self._patience_s:g} seconds"
            await _refusal(message, 408)(scope, receive, send)
            return
        except _TooLarge:
            await self._too_large()(scope, receive, send)
            return
        except ClientDisconnect:
            return
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)

    async def _read(self, receive: Receive) -> bytes:
        found = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            found += message.get("body", b"")
            more = message.get("more_body", False)
            if len(found) > self._most:
                raise _TooLarge
        return bytes(found)

    def _too_large(self) -> JSONResponse:
        return _refusal(f"expected a request of at most {self._most:,} bytes; send it in parts", 413)


class OwnPages:
    """Answers requests that were meant for this service, and no page of another one.

    A page from elsewhere can have its name lead here (DNS rebinding); its browser then says that name as Host, and
    where the page is from as Origin.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] = ()) -> None:
        """`names`: those of a proxy before this service, beside the names of this machine."""
        self._app = app
        self._names = {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            message = self._strange(dict(scope["headers"]))
            app = _refusal(message, 403) if message else app
        await app(scope, receive, send)

    def _strange(self, headers: dict[bytes, Any]) -> str | None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._is_ours(_name(f"//{host}")):
            return "expected this machine, or a name given with `towpath up --name`, in the header Host"
        origin = headers.get(b"origin")
        if origin is None:  # no browser, or a page that is looked at and does not ask
            return None
        text = origin.decode("latin-1").lower()
        if text.partition("://")[2] == host or _name(text) in self._names:
            return None
        return "a page of another origin asks; this service answers its own only"

    def _is_ours(self, name: str | None) -> bool:
        return name is not None and (is_loopback(name) or name in self._names)


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _refusal(message: str, code: int) -> JSONResponse:
    return JSONResponse(dump_error(ServiceError(message)), code)
