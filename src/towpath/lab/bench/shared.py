"""towpath with many queries of one kind."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from towpath.api.running import Towpath, start
from towpath.config.nodes import EmbeddedNode
from towpath.config.settings import NOW
from towpath.control.act.engine import Engine
from towpath.control.decide.requests import Request
from towpath.errors import RuntimeFailure
from towpath.job import Job, ResultsDef
from towpath.lab.bench.feeder import Feeder
from towpath.lab.bench.plain import MEMORY
from towpath.lab.bench.steps import Say, Trigger
from towpath.lab.bench.workloads import WorkloadKind, streams
from towpath.lang import parse
from towpath.plan import CarrierKinds
from towpath.runtime.carriers import BatchDone

REPORT_EVERY = 2000  # queries


def job(folder: Path, data: Path, cores: int, trigger_ms: int, carriers: CarrierKinds = CarrierKinds.AUTO) -> Job:
    node = EmbeddedNode.model_validate({"type": "embedded", "cores": cores, "memory": MEMORY})
    made = Job(folder / "store", trigger_ms, streams(data), {"local": node}, {}, None, ResultsDef.model_validate({}))
    return replace(made, carriers=carriers)


class SharedRequests:
    """The queries of a kind, parsed once however often they are submitted."""

    def __init__(self, kind: WorkloadKind, say: Say) -> None:
        self._kind = kind
        self._catalog = {name: definition.stream for name, definition in streams(Path.cwd()).items()}
        self._say = say
        self._made: list[Request] = []

    def first(self, n: int) -> Sequence[Request]:
        while len(self._made) < n:
            number = len(self._made)
            self._made.append(Request(parse(self._kind.sql(number), self._catalog, f"q{number}"), NOW))
            if number % REPORT_EVERY == REPORT_EVERY - 1:
                self._say(f"{number + 1:,} of {n:,} queries parsed")
        return self._made[:n]


class SharedJob:
    """A running job whose queries become more."""

    def __init__(self, running: Towpath, requests: SharedRequests, feeder: Feeder) -> None:
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
def opened(
    requests: SharedRequests, rate: int, cores: int, carriers: CarrierKinds = CarrierKinds.AUTO
) -> Iterator[SharedJob]:
    with tempfile.TemporaryDirectory(prefix="towpath-bench-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        data = folder / "data"
        data.mkdir()
        made = job(folder, data, cores, trigger_ms=1000, carriers=carriers)
        with start(made) as running, Feeder(data, rate, cores) as feeder:
            yield SharedJob(running, requests, feeder)


def wait_for_all(engine: Engine, patience_s: float) -> None:
    """Until every carrier has done a micro-batch from now on."""
    answered, end = set[str](), time.monotonic() + patience_s
    while len(answered) < len(engine.carriers):
        if time.monotonic() > end:
            raise RuntimeFailure(f"some carriers had no micro-batch after {patience_s:.0f} s")
        time.sleep(0.1)
        answered |= {e.carrier for e in engine.poll() if isinstance(e, BatchDone)}
