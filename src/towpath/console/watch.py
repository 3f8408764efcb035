"""What was looked up of the job, kept for a moment, so that many pages cost the job no more than one.

Nothing is looked up while nobody watches. The job and its queries are looked at more seldom the longer that takes: the
loop that runs the job spends no more than a twentieth of its time on either.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from towpath.console.listing import Listed, listed
from towpath.console.look import JobLook, Lookout
from towpath.console.rates import Rates
from towpath.control.journal.journal import Journal
from towpath.service.messages import JobStatus
from towpath.store.layout import Store

EVERY_S = 1.0
QUERIES_EVERY_S = 2.0
SHARE = 20  # a look at the queries that took a second is good for as many

T = TypeVar("T")
Ask = Callable[[Callable[[], T]], Awaitable[T]]

LEFT_OUT = {"carriers", "nodes", "ways", "moves", "aside", "pid", "store"}


class Watch:
    def __init__(
        self, lookout: Lookout, store: Store, ask: Ask[Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.boot = secrets.token_hex(4)  # another one with every start of the service
        self.version = 0
        self._lookout = lookout
        self._store = store
        self._ask = ask
        self._clock = clock
        self._rates = Rates(store)
        self._job_lock, self._queries_lock = asyncio.Lock(), asyncio.Lock()
        self._job: JobLook | None = None
        self._queries: list[Listed] = []
        self._job_at = self._queries_at = -float("inf")
        self._job_every, self._queries_every = EVERY_S, QUERIES_EVERY_S
        self._sections: dict[str, tuple[int, str]] = {}  # the version in which each changed last, and its JSON
        self._looks = 0  # at the queries, that differed from the one before

    async def job(self) -> JobLook:
        """At most a second old, or older if it takes long to look at it."""
        async with self._job_lock:
            if self._job is None or self._clock() - self._job_at >= self._job_every:
                self._job, seconds = await self._ask(lambda: _timed(self._lookout.job))
                self._job_at, self._job_every = self._clock(), max(EVERY_S, SHARE * seconds)
                newest = await run_in_threadpool(_newest_entry, self._store)
                self._publish(_sections(self._job) | {"history": {"newest": newest}})
            assert self._job is not None, "looked at just now"
            return self._job

    async def queries(self, *, at_once: bool = False) -> list[Listed]:
        """At most two seconds old, or older if it takes long to look at them.

        While somebody looks at them, those of before are good enough for everybody else.
        """
        if self._queries_lock.locked() and self._looks and not at_once:
            return self._queries
        job = await self.job()
        async with self._queries_lock:
            if at_once or self._clock() - self._queries_at >= self._queries_every:
                found, seconds = await self._ask(lambda: _timed(self._lookout.queries))
                rates = await run_in_threadpool(self._rates.look, job.carriers)
                new = await run_in_threadpool(listed, found, job.carriers, rates)
                self._looks += new != self._queries
                self._queries, self._queries_at = new, self._clock()
                self._queries_every = max(QUERIES_EVERY_S, SHARE * seconds)
                self._publish({"queries": {"version": self._looks, "count": len(new)}})
            return self._queries

    def since(self, version: int) -> dict[str, str]:
        """The sections that have changed since a version, as JSON."""
        return {name: text for name, (changed, text) in self._sections.items() if changed > version}

    def _publish(self, sections: Mapping[str, Any]) -> None:
        texts = {name: json.dumps(content, separators=(",", ":")) for name, content in sections.items()}
        changed = {n: text for n, text in texts.items() if self._sections.get(n, (0, ""))[1] != text}
        if changed:
            self.version += 1
            self._sections |= {name: (self.version, text) for name, text in changed.items()}


def _timed(look: Callable[[], T]) -> tuple[T, float]:
    begun = time.perf_counter()
    return look(), time.perf_counter() - begun


def _sections(look: JobLook) -> dict[str, Any]:
    return {
        "figures": _figures(look.status),
        "nodes": [dataclasses.asdict(node) for node in look.nodes],
        "carriers": [dataclasses.asdict(carrier) for carrier in look.carriers],
        "streams": [dataclasses.asdict(stream) for stream in look.streams],
        "ways": [dataclasses.asdict(way) for way in look.status.ways],
        "moves": [dataclasses.asdict(move) for move in look.status.moves],
    }


def _figures(status: JobStatus) -> dict[str, Any]:
    found = {field.name: getattr(status, field.name) for field in dataclasses.fields(status)}
    return {name: value for name, value in found.items() if name not in LEFT_OUT} | {"aside": len(status.aside)}


def _newest_entry(store: Store) -> int:
    journal = Journal(store.journal, read_only=True)
    try:
        newest = journal.history(limit=1)
    finally:
        journal.close()
    return newest[0].number if newest else 0
