"""towpath with many queries of one kind."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from towpath.api import Towpath, start
from towpath.bench.feeder import Feeder
from towpath.bench.plain import MEMORY
from towpath.bench.steps import Say, Trigger
from towpath.bench.workloads import Kind, streams
from towpath.control.requests import Request
from towpath.job import Job, ResultsDef
from towpath.lang import parse
from towpath.nodes import EmbeddedNode
from towpath.runtime.carriers import BatchDone
from towpath.settings import NOW

TELL_EVERY = 2000  # queries


def job(folder: Path, data: Path, cores: int, trigger_ms: int) -> Job:
    node = EmbeddedNode.model_validate({"type": "embedded", "cores": cores, "memory": MEMORY})
    return Job(folder / "store", trigger_ms, streams(data), {"local": node}, {}, None, ResultsDef.model_validate({}))


class Requests:
    """The queries of a kind, parsed once however often they are submitted."""

    def __init__(self, kind: Kind, say: Say) -> None:
        self._kind = kind
        self._catalog = {name: definition.stream for name, definition in streams(Path.cwd()).items()}
        self._say = say
        self._made: list[Request] = []

    def first(self, n: int) -> Sequence[Request]:
        while len(self._made) < n:
            number = len(self._made)
            self._made.append(Request(parse(self._kind.sql(number), self._catalog, f"q{number}"), NOW))
            if number % TELL_EVERY == TELL_EVERY - 1:
                self._say(f"{number + 1:,} of {n:,} queries parsed")
        return self._made[:n]


class Shared:
    """A running job whose queries become more."""

    def __init__(self, running: Towpath, requests: Requests, feeder: Feeder) -> None:
        self.running = running
        self._requests = requests
        self._feeder = feeder

    def grow_to(self, n: int) -> None:
        self.running.engine.submit(self._requests.first(n))
        self._feeder.start()  # after the first queries, or they would begin with a backlog

    def triggers(self) -> Sequence[Trigger]:
        """All carriers work at the same time, so a late trigger of any of them counts."""
        done = [e for e in self.running.engine.poll() if isinstance(e, BatchDone)]
        return [Trigger(e.seconds, e.rows, e.phases_ms, e.state_rows) for e in done]


@contextmanager
def opened(requests: Requests, rate: int, cores: int) -> Iterator[Shared]:
    with tempfile.TemporaryDirectory(prefix="towpath-bench-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        data = folder / "data"
        data.mkdir()
        with start(job(folder, data, cores, trigger_ms=1000)) as running, Feeder(data, rate, cores) as feeder:
            yield Shared(running, requests, feeder)
