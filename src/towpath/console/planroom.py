"""The plan room: what planners would do with the job as it was measured last, and a plan that is carried out.

Planners run in a process of their own, one at a time and for a limited time: some take minutes, and whatever one does,
the loop that runs the job has its interpreter to itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter

from towpath.config.settings import meant
from towpath.console.look import Lookout, WantedMove
from towpath.errors import Mistake, PlannerError, RuntimeFailure, UnknownNameError
from towpath.service.messages import load_error
from towpath.store.layout import Store

log = logging.getLogger(__name__)

LIMIT_S = 60.0  # for a planner, with starting its process and reading what was measured
MOST_MOVES = 200  # that are begun together, as many as when a node is drained
AT_ONCE = 10  # moves that the loop begins before it looks after the job again
PROCESS = "towpath.console.planning"

T = TypeVar("T")
Name = Annotated[str, Field(max_length=250)]
Value = float | Literal["unbounded"] | None  # None: it is not defined there


@dataclass(frozen=True)
class PlannerLook:
    name: str
    help: str
    objective: str | None  # the metric that it makes best
    missing: str  # the packages that it needs, and how to get them; empty: it runs here


@dataclass(frozen=True)
class MetricLook:
    name: str
    unit: str
    better: Literal["lower", "higher"]
    meaning: str


@dataclass(frozen=True)
class Planners:
    planners: list[PlannerLook]
    metrics: list[MetricLook]
    limit_s: float = LIMIT_S
    most_moves: int = MOST_MOVES


@dataclass(frozen=True)
class PlanRequest:
    planner: Name


@dataclass(frozen=True)
class PlannedMove:
    fragment: str
    query: str
    source: str  # nodes
    target: str


@dataclass(frozen=True)
class MetricChange:
    now: Value
    then: Value


@dataclass(frozen=True)
class Plan:
    planner: str
    measured_us: int  # when, by the wall clock
    fragments: int  # that there are
    moves: int
    first: list[PlannedMove]  # of the moves, as many as are begun together
    metrics: dict[str, MetricChange]
    too_full: list[str]  # nodes and links that it would fill beyond what they have
    seconds: float  # that the planner took


@dataclass(frozen=True)
class ApplyRequest:
    planner: Name  # for the history
    moves: Annotated[list[WantedMove], Field(max_length=MOST_MOVES)]


@dataclass(frozen=True)
class StayingFragment:
    fragment: str
    reason: str


@dataclass(frozen=True)
class Applied:
    begun: int
    staying: list[StayingFragment] = field(default_factory=list)


class PlanRoom:
    def __init__(self, store: Store, lookout: Lookout, limit_s: float = LIMIT_S) -> None:
        self._store = store
        self._lookout = lookout
        self._limit_s = limit_s
        self._planning = asyncio.Semaphore(1)
        self._planners: Planners | None = None

    async def planners(self) -> Planners:
        """What there is to choose from; that does not change while the service runs."""
        if self._planners is None:
            self._planners = await self._ask("list", answer=Planners)
        return self._planners

    async def plan(self, asked: PlanRequest) -> Plan:
        """Raises UnknownNameError, MissingPackageError, PlannerError, and NothingMeasured."""
        names = [planner.name for planner in (await self.planners()).planners]
        if asked.planner not in names:
            raise UnknownNameError(f"{asked.planner} is not a known planner; {meant(asked.planner, names)}")
        return await self._ask("plan", str(self._store.root), asked.planner, answer=Plan)

    async def apply(self, asked: ApplyRequest, ask: Callable[[Callable[[], Any]], Awaitable[Any]]) -> Applied:
        """Begins the moves, some at a time: between them the loop looks after the job."""
        staying: list[StayingFragment] = []
        reason = f"{asked.planner} places it there: asked for"
        for n in range(0, len(asked.moves), AT_ONCE):
            some = asked.moves[n : n + AT_ONCE]
            answers = await ask(partial(self._lookout.move, some, reason))
            pairs = zip(some, answers, strict=True)
            staying += [StayingFragment(move.fragment, why) for move, why in pairs if why is not None]
        return Applied(len(asked.moves) - len(staying), staying)

    async def _ask(self, *words: str, answer: type[T]) -> T:
        async with self._planning:
            said = await self._run(words)
        if "error" in said:
            raise load_error(said)
        return TypeAdapter(answer).validate_python(said)

    async def _run(self, words: Sequence[str]) -> dict[str, Any]:
        what = words[-1] if len(words) > 1 else "the list of planners"
        command = (sys.executable, "-P", "-m", PROCESS, f"{self._limit_s:g}", *words)
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
        try:
            out, err = await asyncio.wait_for(process.communicate(), self._limit_s)
        except TimeoutError:
            hint = f"`towpath what-if` with --planner {what} gives it all the time that it takes"
            mistake = Mistake(what, f"did not end within {self._limit_s:g} seconds", hint)
            raise PlannerError(f"{what} was stopped", [mistake]) from None
        finally:  # also when the service ends
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            said: dict[str, Any] = json.loads(out)
        except ValueError:
            log.error("planning with %s ended with %s: %s", what, process.returncode, err.decode(errors="replace"))
            raise RuntimeFailure(f"planning with {what} failed; the log of the service has the details") from None
        return said
