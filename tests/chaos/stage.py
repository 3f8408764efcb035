"""A job on two real nodes, its controller in a process of its own, and what can be done to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

from tests.chaos.schedule import Fault, Schedule, Step
from tests.chaos.servers import Servers

from towpath.api.reader import Reader
from towpath.config.settings import Start
from towpath.control.act.self_monitor import EVERY_S, STILL_S
from towpath.errors import ServiceError, StoreError, TowpathError
from towpath.lab.testing.files import fields_of
from towpath.lab.testing.running import arrive
from towpath.service.client import Client, find
from towpath.service.messages import JobStatus

ROOT = Path(__file__).parents[2]
CONTROLLER = [sys.executable, "-c", "import tests.chaos.clock; from towpath.cli import main; main()"]
PATIENCE_S = 180
STORE_MB = 64
PHASE_S = 1.5
LOST_AFTER_S = 4
NOTICED_S = 1.5  # longer than it takes a controller to look, and to write down what it saw
WARM_S = 30.0
LOSS_S = 3.0  # longer than it takes to see that nobody listens at a node's address


@dataclass(frozen=True)
class Hit:
    step: Step
    at: float
    controller: int | None  # the process that ran then
    clock_s: int  # by how much its clock was wrong already


class Stage:
    def __init__(self, schedule: Schedule, servers: Servers, folder: Path, *, small_disk: bool) -> None:
        self._schedule = schedule
        self._servers = servers
        self._folder = folder
        self.store = folder / "job.store"
        self._small_disk = small_disk
        self._clock = folder / "clock"
        self._job = folder / "job.yaml"
        self._controller: subprocess.Popen[str] | None = None
        self._launched: list[subprocess.Popen[str]] = []
        self.said: list[str] = []
        self._healing: list[tuple[float, Callable[[], None]]] = []
        self._hits: list[Hit] = []
        self._ends: dict[int, float] = {}  # of controllers, by process
        _write_job(self._job, schedule, servers)

    # --- the play ----------------------------------------------------------------------------------------------------

    def play(self) -> None:
        try:
            self._play()
        finally:
            for process in self._launched:
                process.kill()

    def _play(self) -> None:
        self._start()
        for phase, steps in enumerate(self._schedule.steps):
            if phase >= self._schedule.calm and phase:
                self._catch_up()
            self._change_queries(phase)
            arrive(self._schedule.workload, self._folder, phase)
            if phase == 0 and self._schedule.warm:
                self._warm_up()
            for step in steps:
                self._do(step)
            killed = any(step.fault is Fault.KILL_NODE for step in steps)
            self._let_pass(LOSS_S if killed else PHASE_S)
        self._let_pass(max((at for at, _ in self._healing), default=0.0) - time.monotonic())
        self._stop(signal.SIGKILL if self._schedule.killed_at_the_end else signal.SIGINT)
        self._servers.wait_for_one()  # the other one may come back while the job comes to its end
        self._run_until("--until-drained")

    def _warm_up(self) -> None:
        """Until the first micro-batch: faults before it show little but how a job starts."""
        end = time.monotonic() + WARM_S
        while time.monotonic() < end:
            status = self._status()
            if status is not None and any(carrier.trigger_s is not None for carrier in status.carriers):
                return
            self._let_pass(0.2)

    def _do(self, step: Step) -> None:
        running = self._controller.pid if self._controller is not None and self._alive() else None
        self._hits.append(Hit(step, time.monotonic(), running, self._clock_s()))
        node, later = step.node, lambda heal: self._healing.append((time.monotonic() + abs(step.seconds), heal))
        match step.fault:
            case Fault.KILL_NODE:
                self._servers.send(node, signal.SIGKILL)
            case Fault.PAUSE_NODE:
                self._servers.send(node, signal.SIGSTOP)
                later(lambda: self._servers.send(node, signal.SIGCONT))
            case Fault.KILL_CONTROLLER if self._controller is not None:
                self._controller.kill()
                self._ended()
                self._start()
            case Fault.PAUSE_CONTROLLER if self._controller is not None:
                controller = self._controller
                controller.send_signal(signal.SIGSTOP)
                time.sleep(step.seconds)
                controller.send_signal(signal.SIGCONT)
            case Fault.MOVE:
                self._move_queries(node)
            case Fault.FULL_DISK if self._small_disk:
                filler = self.store / "filler"
                _fill(filler)
                time.sleep(max(NOTICED_S, min(step.seconds, 3.0)))
                filler.unlink()
            case Fault.DAMAGED_LOG:
                self._damage_and_restore()
            case Fault.CLOCK:
                self._clock.write_text(str(int(step.seconds)))

    def to_be_reported(self) -> set[Fault]:
        """The faults that somebody must have noticed: whom they hit lived long enough, and so did the controller."""
        return {hit.step.fault for hit in self._hits if self._noticeable(hit)}

    def _noticeable(self, hit: Hit) -> bool:
        fault, seconds = hit.step.fault, hit.step.seconds
        if fault is Fault.KILL_CONTROLLER:
            return hit.controller is not None
        lasts_s = {Fault.KILL_NODE: LOSS_S, Fault.PAUSE_NODE: seconds, Fault.PAUSE_CONTROLLER: seconds}.get(fault, 0.0)
        until = hit.at + lasts_s + NOTICED_S
        alone = not any(o is not hit and abs(o.at - hit.at) < PHASE_S + lasts_s for o in self._hits)
        lived = hit.controller is not None and self._ends.get(hit.controller, inf) > until
        match fault:
            case Fault.KILL_NODE:
                return alone and lived
            case Fault.PAUSE_NODE:
                return alone and lived and seconds > LOST_AFTER_S / 2 + NOTICED_S
            case Fault.PAUSE_CONTROLLER:
                return lived and seconds > STILL_S + 2 * EVERY_S
            case Fault.CLOCK:
                return lived and int(seconds) != hit.clock_s
            case Fault.FULL_DISK:
                return self._small_disk and hit.controller is not None
        return False

    def _let_pass(self, seconds: float) -> None:
        """Time passes; what was to get well in the meantime does."""
        end = time.monotonic() + seconds
        while True:
            for at, heal in list(self._healing):
                if at <= time.monotonic():
                    self._healing.remove((at, heal))
                    heal()
            if time.monotonic() >= end:
                return
            self._keep_running()
            time.sleep(0.1)

    def _clock_s(self) -> int:
        return int(self._clock.read_text()) if self._clock.exists() else 0

    # --- the controller ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._controller = self._launch("up", str(self._job))
        self._wait(lambda: self._status() is not None or not self._alive(), "the service does not start")

    def _launch(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "CHAOS_CLOCK": str(self._clock), "PYTHONPATH": str(ROOT)}
        with (self._folder / "said.txt").open("a") as said:
            process = subprocess.Popen([*CONTROLLER, *arguments], stdout=said, stderr=said, env=environment, text=True)
        self._launched.append(process)
        return process

    def _alive(self) -> bool:
        return self._controller is not None and self._controller.poll() is None

    def _ended(self) -> None:
        if self._controller is not None:
            self._controller.wait(PATIENCE_S)
            self._ends[self._controller.pid] = time.monotonic()
        self._controller = None

    def _keep_running(self) -> None:
        """A job that cannot go on says so and ends; whoever runs it starts it again when the cause is gone."""
        if not self._alive():
            self._ended()
            self._servers.wait_for_one()
            self._start()

    def _stop(self, how: signal.Signals) -> None:
        if self._controller is not None:
            self._controller.send_signal(how)
        self._ended()

    def _catch_up(self) -> None:
        """What comes next may be late, by what has come so far: all of it is to be read before."""
        self._stop(signal.SIGINT)
        self._servers.wait_for_all()
        self._run_until("--until-caught-up")
        self._start()

    def _run_until(self, when: str) -> None:
        for _ in range(2):  # a carrier may have used its attempts up while it was starved
            last = self._launch("run", str(self._job), when)
            if last.wait(PATIENCE_S) == 0:
                return
        raise AssertionError(f"the job does not end\n{(self._folder / 'said.txt').read_text()[-3000:]}")

    def _status(self) -> JobStatus | None:
        try:
            return find(self.store).status()
        except TowpathError:
            return None

    def _wait(self, happened: Callable[[], bool], otherwise: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not happened():
            assert time.monotonic() < end, otherwise
            time.sleep(0.1)

    # --- queries -----------------------------------------------------------------------------------------------------

    def _change_queries(self, phase: int) -> None:
        for name, query in self._schedule.workload.queries.items():
            texts = [change.sql for change in query.replaced if change.phase == phase]
            if query.submit == phase and phase:
                texts.append(query.sql)
            for sql in texts:
                asked = {name: {"sql": sql, "from": _written(query.begins)}}
                self._ask(lambda client, a=asked: client.submit(a))
            if query.withdraw == phase:
                self._ask(lambda client, n=name: client.withdraw([n]))
                self._leave_out(name)

    def _leave_out(self, query: str) -> None:
        """Of the job file: the next controller would take it for one that is to come again."""
        job = json.loads(self._job.read_text())
        job["queries"].pop(query, None)
        self._job.write_text(json.dumps(job))

    def _move_queries(self, node: str) -> None:
        """Half of them to the node, the others to a kind of carrier where they are: each node stands for one."""
        names = [n for n, query in self._schedule.workload.queries.items() if not query.stays]
        kind = "universal" if node == min(self._servers.addresses) else "compiled"
        asked = [*((name, node, None) for name in names[::2]), *((name, None, kind) for name in names[1::2])]
        for name, to, carriers in asked:
            with suppress(TowpathError):  # it may be there already, not stand yet, or be on its way
                find(self.store).migrate(name, to, carriers)

    def _ask(self, question: Callable[[Client], object]) -> None:
        """Until it is answered: the controller may have just ended."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self._keep_running()
            try:
                question(find(self.store))
                return
            except ServiceError:
                time.sleep(0.2)
            except TowpathError as refused:
                self.said.append(str(refused))
                return
        raise AssertionError("the service does not answer")

    # --- the log -----------------------------------------------------------------------------------------------------

    def _damage_and_restore(self) -> None:
        """A file of the results log is cut short: whoever reads it hears of it, and nobody gets a wrong answer."""
        before = self._read_all()
        for path in sorted(self.store.glob("carriers/*/e*/results/*/*.parquet"))[:1]:
            with path.open("r+b") as file:  # by this name there may be nothing any more a moment later
                content = file.read()
                file.truncate(len(content) // 2)
                meanwhile = self._read_all()
                file.seek(0)
                file.write(content)
            for read, rows in meanwhile.items():
                assert not before.get(read, Counter()) - rows, f"a cut file took rows from {read}, and nobody heard"

    def _read_all(self) -> dict[tuple[str, str], Counter[str]]:
        """The rows of every query that can be read, by its name and the event times it answers for."""
        found, reader = {}, Reader(self.store)
        for name in reader.names():
            try:
                rows = Counter(map(str, reader.read(name).to_pylist()))
            except StoreError as error:
                self.said.append(str(error))
            else:
                found[name, str(reader.validity(name))] = rows
        return found


def _write_job(job: Path, schedule: Schedule, servers: Servers) -> None:
    streams = {}
    for name, stream in schedule.workload.recording.catalog.items():
        (job.parent / name).mkdir()
        format_ = schedule.workload.recording.formats[name]
        fields = fields_of(stream, format_)
        streams[name] = {
            "source": {"type": "files", "path": f"./{name}", "format": format_, "fields": fields},
            "schema": {column.name: column.kind.value for column in stream.columns},
            "time": stream.time,
            "delay": f"{stream.delay_us // 1_000_000} seconds",
            "idle_after": f"{schedule.workload.recording.idle_after_ms} ms",
        }
    early = {n: q for n, q in schedule.workload.queries.items() if q.submit == 0}
    nodes = {
        name: {"type": "connect", "address": address, "cores": 1, "lost_after": f"{LOST_AFTER_S} seconds"}
        for name, address in servers.addresses.items()
    }
    queries = {n: {"sql": q.sql, "copies": schedule.copies, "from": _written(q.begins)} for n, q in early.items()}
    text = {"trigger": "200 ms", "nodes": nodes, "streams": streams, "queries": queries}
    carriers, *_ = schedule.workload.carriers
    job.write_text(json.dumps({**text, "fragments": schedule.fragments, "carriers": carriers}))


def _written(start: Start) -> str:
    """As a job file has it."""
    if start.us is None:
        return "now" if start.now else "beginning"
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=start.us)).isoformat()


def _fill(file: Path) -> None:
    with suppress(OSError), file.open("wb", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    filler.write(b"\0" * size)


def mount_small(folder: Path) -> bool:
    """A disk that can be filled. Needs the right to mount; without it that fault is left out."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={STORE_MB}m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    return made.returncode == 0


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)
