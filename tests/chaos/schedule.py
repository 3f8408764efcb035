"""What goes wrong when: drawn from a seed, so that a failure can be seen again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from towpath.lab.testing.drawing import random_streams
from towpath.lab.testing.late import first_late_phase, late_rows
from towpath.lab.testing.queries import random_cuttable_shape, random_shape
from towpath.lab.testing.workload import Workload, counting, named, random_submission, with_carriers
from towpath.plan import CUT, WHOLE

NODES = ("n1", "n2")
MOST_SHAPES, MOST_QUERIES = 2, 8  # every shape is a carrier, and two cores have to run them all


class Fault(StrEnum):
    KILL_NODE = "kill node"
    PAUSE_NODE = "pause node"
    KILL_CONTROLLER = "kill controller"
    PAUSE_CONTROLLER = "pause controller"
    MOVE = "move queries"
    FULL_DISK = "full disk"
    DAMAGED_LOG = "damaged log"
    CLOCK = "clock step"


@dataclass(frozen=True)
class Step:
    fault: Fault
    node: str  # whom it hits, if it is about a node
    seconds: float  # how long it lasts, or by how much a clock is wrong


@dataclass(frozen=True)
class Schedule:
    seed: int
    workload: Workload
    steps: tuple[tuple[Step, ...], ...]  # those of each phase, when its tuples have arrived
    copies: int
    fragments: str
    warm: bool  # nothing goes wrong before the first micro-batch
    killed_at_the_end: bool  # the controller, before the last one drains the job; else it is stopped

    @property
    def calm(self) -> int:
        """Before this phase no row is late."""
        return first_late_phase(self.workload.recording)

    def __str__(self) -> str:
        late = sum(late_rows(self.workload.recording).values())
        shown = (", ".join(f"{s.fault} {s.node}" for s in steps) or "nothing" for steps in self.steps)
        return f"seed {self.seed}, {self.fragments}, copies {self.copies}, {late} late rows: {'; '.join(shown)}"


def schedule(seed: int) -> Schedule:
    rng = Random(seed)
    recording = random_streams(rng)
    cut = rng.random() < 0.3  # queries run in pieces, joined by links
    shape = random_cuttable_shape if cut else random_shape
    shapes = [shape(rng, recording.catalog) for _ in range(1 if cut else rng.randint(1, MOST_SHAPES))]
    phases, calm = len(recording.chunks), first_late_phase(recording)
    queries = [random_submission(rng, shapes, recording, calm) for _ in range(rng.randint(2, MOST_QUERIES))]
    steps = tuple(tuple(_step(rng) for _ in range(rng.choice((0, 1, 1, 2)))) for _ in range(phases))
    if not any(steps):
        steps = ((_step(rng),), *steps[1:])
    workload = with_carriers(Random(seed), Workload(recording, named(queries) | counting(recording)))
    return Schedule(
        seed,
        workload,
        steps,
        copies=1 if cut else rng.choice((1, 1, 2)),
        fragments=CUT if cut else WHOLE,
        warm=rng.random() < 0.75,
        killed_at_the_end=rng.random() < 0.5,
    )


def _step(rng: Random) -> Step:
    fault = rng.choice(list(Fault))
    seconds = rng.choice((-86_400, -60, 60, 86_400)) if fault is Fault.CLOCK else rng.uniform(0.5, 6.0)
    return Step(fault, rng.choice(NODES), seconds)
