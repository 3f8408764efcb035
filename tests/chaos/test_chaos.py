"""Seeded schedules of faults; at the end every query equals the batch answer, and nothing went wrong in silence.

TOWPATH_CHAOS says how many schedules are run and TOWPATH_CHAOS_FIRST where they begin (`make test-chaos`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.schedule import Fault, Schedule, schedule
from tests.chaos.servers import Servers
from tests.chaos.stage import Stage, mount_small, unmount

from towpath.api.reader import Reader
from towpath.control.journal.journal import Journal
from towpath.control.state.history import EventKind
from towpath.lab.testing.batch import Batch, between
from towpath.lab.testing.late import late_rows

pytestmark = pytest.mark.chaos

FIRST, COUNT = int(os.environ.get("TOWPATH_CHAOS_FIRST", "0")), int(os.environ.get("TOWPATH_CHAOS", "20"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        found = Servers()
        yield found
        found.stop()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[bool]:
    """Whether the job's store is on a disk of its own, which can be filled."""
    folder = tmp_path / "job.store"
    yield mount_small(folder)
    unmount(folder)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_nothing_is_lost_or_doubled(servers: Servers, store: bool, tmp_path: Path, seed: int) -> None:
    plan = schedule(seed)
    print(plan)
    servers.wait_for_all()
    stage = Stage(plan, servers, tmp_path, small_disk=store)
    stage.play()
    differing = wrong(plan, stage.store)
    assert not differing, "\n\n".join(f"{name}: {difference}" for name, difference in differing.items())
    assert miscounted(plan, stage.store) is None
    said = (tmp_path / "said.txt").read_text()
    assert "Traceback" not in said and "at org.apache" not in said, said[-4000:]
    assert not unmentioned(stage.to_be_reported(), stage.store, said)


def wrong(plan: Schedule, store: Path) -> dict[str, str]:
    batch, reader = Batch(plan.workload), Reader(store)
    found = {}
    for name in reader.names():
        versions = reader.versions(name)
        # Queries move, so a filter may have missed late rows.
        difference = between(batch.answers(versions, settled=False), batch.answers(versions), reader.read(name))
        if difference is not None:
            found[name] = f"{plan.workload.queries[name]}: {difference}"
    return found


def miscounted(plan: Schedule, store: Path) -> str | None:
    """No late row is counted that came in time; all are, unless reports of micro-batches were never heard."""
    state, late = Journal(store / "journal.sqlite", read_only=True).load(), late_rows(plan.workload.recording)
    counted = {name: stream.late for name, stream in state.streams.items() if stream.late}
    unheard = sum(carrier.unheard for carrier in state.carriers.values())
    right = all(rows <= late.get(name, 0) for name, rows in counted.items()) if unheard else counted == late
    return None if right else f"{counted} late rows were counted, {late} came; {unheard} reports were missed"


def unmentioned(expected: set[Fault], store: Path, said: str) -> set[Fault]:
    """Faults that must have been reported, in the history or on the terminal, and were not."""
    history = Journal(store / "journal.sqlite", read_only=True).history()
    kinds = {entry.kind for entry in history}
    words = said + "\n".join(entry.text for entry in history)
    mentioned = {
        Fault.KILL_NODE: EventKind.NODE_LOST in kinds,
        Fault.PAUSE_NODE: bool({EventKind.NODE_LOST, EventKind.NODE_SLOW} & kinds),
        Fault.KILL_CONTROLLER: "ended without being stopped" in words,
        Fault.PAUSE_CONTROLLER: "the controller stood still" in words,
        Fault.CLOCK: "the clock was put" in words,
        Fault.FULL_DISK: any(text in words for text in ("the disk that the store is on", "disk is full")),
    }
    return {fault for fault in expected if not mentioned[fault]}
