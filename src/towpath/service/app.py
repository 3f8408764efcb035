"""The HTTP API: checks who asks and what, hands the verb to the loop that runs the job, and waits for its answer."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from towpath.config.settings import expectation
from towpath.errors import (
    ProblemsError,
    RuntimeFailure,
    ServiceError,
    StoreError,
    StreamError,
    TowpathError,
    UnknownNameError,
    UnknownQueryError,
)
from towpath.service import health, metrics
from towpath.service.limits import BoundedBody
from towpath.service.messages import Drain, LookRequest, Migrate, Submit, Withdraw, dump_error
from towpath.service.request_queue import RequestQueue
from towpath.service.verbs import Verbs

log = logging.getLogger(__name__)

PATIENCE_S = 60.0  # a query may need a new carrier, which takes Spark seconds to start

MOST_SQL = 2_000_000  # characters in one request: 20 queries as long as a query can be

FAILED = 500
CODES: tuple[tuple[type[TowpathError], int], ...] = (
    (UnknownQueryError, 404),
    (UnknownNameError, 404),
    (ProblemsError, 422),
    (RuntimeFailure, FAILED),
    (StoreError, FAILED),
    (StreamError, FAILED),
    (ServiceError, 503),
)
REFUSED = 409  # every other error meant for the user

T = TypeVar("T")


@dataclass(frozen=True)
class Kit:
    """What those need who answer beside the API: to ask the loop that runs the job, to check what they are asked."""

    ask: Callable[[Callable[[], Any]], Awaitable[Any]]
    body: Callable[[Request, Any], Awaitable[Any]]
    checked: Callable[[TypeAdapter[Any], object], Any]


class Beside(Protocol):
    """What is served beside the API: the console."""

    def routes(self, kit: Kit, tokens: Mapping[str, str]) -> Sequence[BaseRoute]:
        """`tokens`: what each lets one be, operator or reader."""

    def refusal(self, request: Request) -> Response | None:
        """Why somebody without the token of the service is kept out; None if they may come in."""


def build(
    verbs: Verbs,
    requests: RequestQueue,
    token: str,
    patience_s: float = PATIENCE_S,
    beside: Beside | None = None,
    reader_token: str = "",
    scraping: metrics.Scraping = metrics.NOBODY,
) -> Starlette:
    routes = _Routes(verbs, requests, patience_s)
    more = beside.routes(routes.kit, {token: "operator", reader_token: "reader"}) if beside else ()
    return Starlette(
        routes=[
            Route("/status", routes.status, methods=["GET"]),
            Route("/queries", routes.queries, methods=["GET"]),
            Route("/queries", routes.submit, methods=["POST"]),
            Route("/costs", routes.costs, methods=["GET"]),
            Route("/withdraw", routes.withdraw, methods=["POST"]),
            Route("/moves", routes.moves, methods=["GET"]),
            Route("/moves", routes.migrate, methods=["POST"]),
            Route("/drain", routes.drain, methods=["POST"]),
            Route("/history", routes.history, methods=["GET"]),
            metrics.Metrics(verbs, routes.kit.ask, scraping.most_queries).route,
            *health.Health(verbs, routes.kit.ask).routes,
            *more,
        ],
        # A body is read only if its sender may send one.
        middleware=[
            Middleware(_Guard, token=token, metrics_token=scraping.token, beside=beside),
            Middleware(BoundedBody),
        ],
        exception_handlers={TowpathError: _failed, HTTPException: _misunderstood, Exception: _internal},
    )


class _Guard:
    """Lets only those in who have read the token, whatever they ask for, and whom the console lets in.

    Everybody may ask whether the service is well, and those with a token for it read the metrics.
    """

    def __init__(self, app: ASGIApp, token: str, metrics_token: str = "", beside: Beside | None = None) -> None:
        self._app = app
        self._beside = beside
        self._operator = f"Bearer {token}".encode()
        self._scraper = f"Bearer {metrics_token}".encode() if metrics_token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and not self._may(scope):
            app = self._refusal(Request(scope)) or app
        await app(scope, receive, send)

    def _may(self, scope: Scope) -> bool:
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"")
        if secrets.compare_digest(given, self._operator):
            return True
        # The body of somebody who is not known is not read.
        if b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0":
            return False
        if scope["path"] == metrics.PATH and scope["method"] in health.SAFE and self._scraper is not None:
            return secrets.compare_digest(given, self._scraper)
        return health.is_open(scope["method"], scope["path"])

    def _refusal(self, request: Request) -> Response | None:
        if self._beside is not None:
            return self._beside.refusal(request)
        message = "expected the token of this service in the header Authorization: Bearer TOKEN"
        return JSONResponse(dump_error(ServiceError(message)), 401, {"WWW-Authenticate": "Bearer"})


class _Routes:
    def __init__(self, verbs: Verbs, requests: RequestQueue, patience_s: float) -> None:
        self._verbs = verbs
        self._requests = requests
        self._patience_s = patience_s

    @property
    def kit(self) -> Kit:
        return Kit(self._ask, _body, _checked)

    async def status(self, _: Request) -> Response:
        return _answer(await self._ask(self._verbs.status))

    async def costs(self, _: Request) -> Response:
        return _answer(await self._ask(self._verbs.costs))

    async def queries(self, _: Request) -> Response:
        return _answer(await self._ask(self._verbs.queries))

    async def submit(self, request: Request) -> Response:
        asked = await _body(request, Submit)
        _refuse_long(asked)
        return _answer(await self._ask(lambda: self._verbs.submit(asked)))

    async def withdraw(self, request: Request) -> Response:
        asked = await _body(request, Withdraw)
        return _answer(await self._ask(lambda: self._verbs.withdraw(asked)))

    async def moves(self, request: Request) -> Response:
        numbers = _checked(TypeAdapter(list[int]), request.query_params.getlist("number"))
        return _answer(await self._ask(lambda: self._verbs.moves(numbers)))

    async def migrate(self, request: Request) -> Response:
        asked = await _body(request, Migrate)
        return _answer(await self._ask(lambda: self._verbs.migrate(asked)))

    async def drain(self, request: Request) -> Response:
        asked = await _body(request, Drain)
        return _answer(await self._ask(lambda: self._verbs.drain(asked)))

    async def history(self, request: Request) -> Response:
        asked = _checked(TypeAdapter(LookRequest), dict(request.query_params))
        # From the journal and not from the engine, so nobody has to wait.
        return _answer(await run_in_threadpool(self._verbs.history, asked))

    async def _ask(self, verb: Callable[[], T]) -> T:
        future = self._requests.put(verb)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._patience_s)
        except TimeoutError:
            done = "it has begun and goes on" if future.running() else "it was not begun and will not be"
            raise ServiceError(
                f"the job did not come to it within {self._patience_s:g} seconds ({done}); look at `towpath status`"
            ) from None


async def _body(request: Request, kind: type[T]) -> T:
    try:
        value = json.loads(await request.body(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        raise HTTPException(400, f"expected JSON: {error}") from None
    return _checked(TypeAdapter(kind), value)


def _refuse_long(asked: Submit) -> None:
    """The job waits while queries are read."""
    characters = sum(len(query["sql"]) for query in asked.queries.values() if isinstance(query.get("sql"), str))
    if characters > MOST_SQL:
        message = (
            f"{characters:,} characters of SQL, at most {MOST_SQL:,} can be submitted together; submit them in parts"
        )
        raise HTTPException(413, message)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _checked(adapter: TypeAdapter[T], value: object) -> T:
    _refuse_half_characters(value)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        mistakes = (f"{'.'.join(map(str, m['loc'])) or 'the request'}: {expectation(m)}" for m in error.errors())
        raise HTTPException(400, f"expected another request: {'; '.join(mistakes)}") from None


def _refuse_half_characters(value: object) -> None:
    """JSON can name half of a character that takes two, which no file, journal or answer can hold."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise HTTPException(400, f"expected text in Unicode, got {half}, a half of a character") from None


def _answer(value: Any) -> JSONResponse:
    return JSONResponse(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, TowpathError), "registered for these"
    code = next((code for kind, code in CODES if isinstance(error, kind)), REFUSED)
    if code == FAILED:
        log.error("a request failed: %s", error, exc_info=error)
    return JSONResponse(dump_error(error), code)


async def _misunderstood(request: Request, error: Exception) -> Response:
    """Something that no command of towpath sends."""
    assert isinstance(error, HTTPException), "registered for these"
    message = (
        f"{request.method} {request.url.path}: {error.detail}; `towpath docs service` has what the service answers to"
    )
    return JSONResponse(dump_error(ServiceError(message)), error.status_code)


async def _internal(_: Request, error: Exception) -> Response:
    log.error("a request failed", exc_info=error)
    message = f"internal error: {type(error).__name__}: {error}; the details are in the log of the service"
    return JSONResponse(dump_error(ServiceError(message)), 500)
