"""The web console as the service mounts it: its pages, its endpoints, and who may come in without the token."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from towpath.console import map as drawn
from towpath.console import openapi, reading, replay
from towpath.console.listing import ListRequest, QueryDetails, QueryPage, page
from towpath.console.look import Lookout
from towpath.console.openapi import Endpoint
from towpath.console.planroom import Applied, ApplyRequest, Plan, Planners, PlanRequest, PlanRoom
from towpath.console.reading import CheckRequest, ExplainRequest, ResultsRequest
from towpath.console.replay import ReplayPage, ReplayRequest, Standing
from towpath.console.sessions import LASTS_S, Role, Sessions
from towpath.console.static import HEADERS, Files
from towpath.console.watch import EVERY_S, Watch
from towpath.errors import ServiceError, UnknownQueryError
from towpath.job import Job
from towpath.service.app import Kit
from towpath.service.messages import dump_error
from towpath.store.layout import Store

log = logging.getLogger(__name__)

MOST_STREAMS = 32  # of events, open at the same time
SILENT_S = 15.0  # after so long a stream says that it is still there
AGAIN_MS = 2000  # after which a browser asks for a stream that broke off
SAFE = {"GET", "HEAD"}
SESSION = "/console/session"
LOOKING = {SESSION, "/console/check", "/console/explain", "/console/plan"}  # POST, since what they ask may be long
MOST_OF_STRANGERS = 4096  # bytes that somebody may send who is not known yet

T = TypeVar("T")


@dataclass(frozen=True)
class LoginRequest:
    token: Annotated[str, Field(max_length=1000)]


@dataclass(frozen=True)
class LoggedIn:
    role: Role | None  # None: nobody is logged in
    job: str  # what the pages are titled with
    lasts_s: int


@dataclass(frozen=True)
class QueryRequest:
    name: Annotated[str, Field(max_length=500)]


@dataclass(frozen=True)
class EventsRequest:
    after: Annotated[str, Field(max_length=100)] = ""  # the id of the last event that came; also as Last-Event-ID


class Console:
    def __init__(self, job: Job, lookout: Lookout, files: Files | None = None) -> None:
        self._job = job
        self._store = Store(job.store)
        self._title = job.store.name.removesuffix(".store")
        self._lookout = lookout
        self._planroom = PlanRoom(self._store, lookout)
        self._files = files or Files()
        self._sessions = Sessions(self._store.console)
        # Cookies are for all ports of a machine: another job's console must not log this one out.
        self._cookie = f"towpath-{hashlib.sha256(str(self._store.root).encode()).hexdigest()[:8]}"
        self._tokens: Mapping[str, Role] = {}
        self._streams = 0
        # They take time from the loop that runs the job, which is in the same process.
        self._explaining, self._reading = asyncio.Semaphore(1), asyncio.Semaphore(2)

    # --- what the service asks ----------------------------------------------------------------------------------------

    def routes(self, kit: Kit, tokens: Mapping[str, str]) -> list[BaseRoute]:
        """Its pages and endpoints. `tokens`: what each lets one do, by the name of a role."""
        self._tokens = {token: Role(role) for token, role in tokens.items() if token}
        self._kit = kit
        self._watch = Watch(self._lookout, self._store, kit.ask)
        files = [Route(path, self._files.file, methods=["GET"]) for path in self._files.paths]
        pages = [Route("/", self._files.page, methods=["GET"]), *files]
        return [*pages, *(Route(e.path, e.does, methods=[e.method]) for e in self._endpoints if e.does is not None)]

    def refusal(self, request: Request) -> Response | None:
        """Why somebody who has not shown the token of the service may not come in; None if they may."""
        path, method = request.url.path, request.method
        if method in SAFE and (path == "/" or path in self._files.paths):
            return None
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        role = self._role_of(given)
        if role is None:
            if method not in SAFE and (refused := self._foreign(request)) is not None:
                return refused
            if path == SESSION:
                return _too_long(request)  # whoever logs in or out, and whoever asks whether they are, may
            session = self._sessions.find(request.cookies.get(self._cookie))
            role = None if session is None else session.role
        if role is None:
            return _error(401, "log in first, or show the token of this service: Authorization: Bearer TOKEN")
        if role is Role.READER and method not in SAFE and path not in LOOKING:
            return _error(403, "you are logged in as a reader, who may look at everything and change nothing")
        return None

    def _role_of(self, token: str) -> Role | None:
        given = token.encode("utf-8", "surrogatepass")
        matching = [role for known, role in self._tokens.items() if secrets.compare_digest(known.encode(), given)]
        return matching[0] if matching else None

    def _foreign(self, request: Request) -> Response | None:
        """A cookie comes with requests of any page, so what changes something has to come from one of ours."""
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        if origin in (f"http://{host}", f"https://{host}"):
            return None
        return _error(403, f"expected a request of a page of this service ({host}), got one of {origin or 'nowhere'}")

    # --- endpoints ----------------------------------------------------------------------------------------------------

    @property
    def _endpoints(self) -> list[Endpoint]:
        e = Endpoint
        return [
            e("GET", "/console/session", self._session, "Who is logged in", answer=LoggedIn),
            e("POST", "/console/session", self._login, "Log in: a token for a cookie", LoginRequest, LoggedIn),
            e("DELETE", "/console/session", self._logout, "Log out", code=204),
            e("GET", "/console/events", self._events, "What changes, as server-sent events", query=EventsRequest),
            e("GET", "/console/queries", self._list, "A page of the queries", answer=QueryPage, query=ListRequest),
            e("GET", "/console/query", self._query, "One query", answer=QueryDetails, query=QueryRequest),
            e("GET", "/console/fragments", self._fragments, "What is in carriers", answer=list[drawn.CarrierFragments]),
            e("GET", "/console/results", self._results, "Newest rows", answer=reading.Results, query=ResultsRequest),
            e("POST", "/console/check", self._check, "What is wrong with a text", CheckRequest, reading.Checked),
            e("POST", "/console/explain", self._explain, "How it would run", ExplainRequest, reading.ExplainAnswer),
            e("GET", "/console/planners", self._planners, "What planners there are", answer=Planners),
            e("POST", "/console/plan", self._plan, "What one would do", PlanRequest, Plan),
            e("POST", "/console/apply", self._apply, "Begin the moves of a plan", ApplyRequest, Applied),
            e("GET", "/console/standing", self._standing, "What stands where", answer=Standing),
            e("GET", "/console/replay", self._replay, "What changed", answer=ReplayPage, query=ReplayRequest),
            e("GET", "/openapi.json", self._openapi, "This description"),
        ]

    async def _openapi(self, _: Request) -> Response:
        return JSONResponse(openapi.document([*openapi.SERVICE, *self._endpoints]), headers=HEADERS)

    async def _session(self, request: Request) -> Response:
        session = self._sessions.find(request.cookies.get(self._cookie))
        role = self._role_of(request.headers.get("authorization", "").removeprefix("Bearer "))
        role = session.role if session else role
        return _answer(LoggedIn(role, self._title if role else "", LASTS_S))

    async def _login(self, request: Request) -> Response:
        asked = await self._kit.body(request, LoginRequest)
        role = self._role_of(asked.token.strip())
        if role is None:
            log.warning("somebody tried to log in with a wrong token")
            return _error(401, "this is not the token of this service; it changes whenever the service is started")
        answer = _answer(LoggedIn(role, self._title, LASTS_S))
        answer.set_cookie(
            self._cookie,
            self._sessions.begin(role),
            max_age=LASTS_S,
            httponly=True,
            samesite="strict",
            secure=request.headers.get("origin", "").startswith("https:"),  # behind a proxy with TLS
        )
        return answer

    async def _logout(self, request: Request) -> Response:
        self._sessions.end(request.cookies.get(self._cookie))
        answer = Response(status_code=204, headers=HEADERS)
        answer.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return answer

    async def _list(self, request: Request) -> Response:
        asked = self._kit.checked(TypeAdapter(ListRequest), dict(request.query_params))
        queries = await self._watch.queries()
        return _answer(await run_in_threadpool(page, queries, asked))

    async def _query(self, request: Request) -> Response:
        asked = self._kit.checked(TypeAdapter(QueryRequest), dict(request.query_params))
        for at_once in (False, True):  # it may have been submitted a moment ago
            for query in await self._watch.queries(at_once=at_once):
                if query.name == asked.name:
                    return _answer(query.details)
        raise UnknownQueryError(f"no query named {asked.name!r} is running")

    async def _fragments(self, _: Request) -> Response:
        queries = await self._watch.queries()
        return _answer(await run_in_threadpool(drawn.fragments, queries))

    async def _results(self, request: Request) -> Response:
        asked = self._kit.checked(TypeAdapter(ResultsRequest), dict(request.query_params))
        async with self._reading:
            return _answer(await run_in_threadpool(reading.results, self._store, asked))

    async def _check(self, request: Request) -> Response:
        asked = await self._kit.body(request, CheckRequest)
        async with self._reading:
            return _answer(await run_in_threadpool(reading.check, self._job, asked))

    async def _explain(self, request: Request) -> Response:
        asked = await self._kit.body(request, ExplainRequest)
        async with self._explaining:
            return _answer(await run_in_threadpool(reading.explained, self._job, asked))

    # --- planning and replaying ---------------------------------------------------------------------------------------

    async def _planners(self, _: Request) -> Response:
        return _answer(await self._planroom.planners())

    async def _plan(self, request: Request) -> Response:
        return _answer(await self._planroom.plan(await self._kit.body(request, PlanRequest)))

    async def _apply(self, request: Request) -> Response:
        asked = await self._kit.body(request, ApplyRequest)
        return _answer(await self._planroom.apply(asked, self._kit.ask))

    async def _standing(self, _: Request) -> Response:
        async with self._reading:
            return _answer(await run_in_threadpool(replay.standing, self._store, self._job))

    async def _replay(self, request: Request) -> Response:
        asked = self._kit.checked(TypeAdapter(ReplayRequest), dict(request.query_params))
        async with self._reading:
            return _answer(await run_in_threadpool(replay.page, self._store, asked))

    # --- events -------------------------------------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        asked = self._kit.checked(TypeAdapter(EventsRequest), dict(request.query_params))
        if self._streams >= MOST_STREAMS:
            return _error(503, f"{MOST_STREAMS} pages are open already; close some of them")
        cookie = request.cookies.get(self._cookie)
        welcome = (lambda: True) if cookie is None else (lambda: self._sessions.find(cookie) is not None)
        after = request.headers.get("last-event-id") or asked.after
        headers = {**HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._stream(after, welcome), media_type="text/event-stream", headers=headers)

    async def _stream(self, after: str, welcome: Callable[[], bool]) -> AsyncIterator[str]:
        """What changed since the last look, at most once a second.

        Nothing waits for a slow client: when it comes back, it is given what has changed since, each part once.
        """
        watch, loop = self._watch, asyncio.get_running_loop()
        boot, _, version = after.partition("-")
        seen = int(version) if boot == watch.boot and version.isdecimal() and len(version) < 19 else 0
        self._streams += 1
        try:
            yield f"retry: {AGAIN_MS}\n\n"
            spoken = loop.time()
            while welcome():
                try:
                    await watch.queries()
                except ServiceError:
                    return  # the job ends, or has no time
                if changed := watch.since(seen):
                    seen, spoken = watch.version, loop.time()
                    yield _event(f"{watch.boot}-{seen}", changed)
                elif loop.time() - spoken >= SILENT_S:
                    spoken = loop.time()
                    yield ": still here\n\n"
                await asyncio.sleep(EVERY_S)
        finally:
            self._streams -= 1


def _event(number: str, sections: Mapping[str, str]) -> str:
    data = ",".join(f'"{name}":{text}' for name, text in sections.items())
    return f"id: {number}\nevent: change\ndata: {{{data}}}\n\n"


def _too_long(request: Request) -> Response | None:
    """A token is short, and nobody is known before it was read."""
    said = request.headers.get("content-length", "0" if request.method != "POST" else "")
    if said.isdecimal() and len(said) < 10 and int(said) <= MOST_OF_STRANGERS:
        return None
    return _error(413, f"expected at most {MOST_OF_STRANGERS:,} bytes, and the header Content-Length")


def _error(code: int, message: str) -> Response:
    return JSONResponse(dump_error(ServiceError(message)), code, {**HEADERS, "WWW-Authenticate": "Bearer"})


def _answer(value: Any) -> JSONResponse:
    plain: Any = TypeAdapter(type(value)).dump_python(value, mode="json")
    return JSONResponse(plain, headers={**HEADERS, "Cache-Control": "no-store"})
