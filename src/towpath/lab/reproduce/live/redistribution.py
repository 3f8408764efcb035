"""dcape-fig6-live: what moving costs on Spark nodes, and what redistribution brings (Figures 6.3 to 6.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from towpath.api.running import Towpath, start
from towpath.config.steering import ControlDef
from towpath.control.state.fence import OPEN, MoveStep
from towpath.lab.reproduce.live.driving import LiveDriver
from towpath.lab.reproduce.live.nodes import CAPPED, Machines, machines
from towpath.lab.reproduce.live.plans import LivePlan, LiveSource, job, units
from towpath.lab.reproduce.report import Bars, ExperimentReport, Progress, Scale, Series, Statement, Table, silent

MOVED = "join0_0"
EVERY_S, WINDOW_S = 60, 20  # of event time: how often the thesis moves its join, and the join's window
MOVES = 2  # of a section: there and back
SHUTTLED: Mapping[Scale, LivePlan] = {
    "tiny": LivePlan(groups=2, queries=1, rate=5, window_s=WINDOW_S, chunk_s=10),
    "default": LivePlan(groups=2, queries=1, rate=200, window_s=WINDOW_S, chunk_s=15),
    "full": LivePlan(groups=3, queries=1, rate=500, window_s=WINDOW_S, chunk_s=6),
}
SKEWED: Mapping[Scale, LivePlan] = {
    "tiny": LivePlan(groups=1, queries=1, rate=5, chunk_s=10, cheap=1),
    "default": LivePlan(groups=3, queries=1, rate=500, chunk_s=5, cheap=3),
    "full": LivePlan(groups=8, queries=1, rate=1000, chunk_s=5, cheap=8),
}
STARTS: Mapping[Scale, tuple[str, ...]] = {
    "tiny": ("round_robin",),
    "default": ("round_robin",),
    "full": ("round_robin", "grouping"),
}
DECIDING: Mapping[Scale, int] = {"tiny": 1, "default": 16, "full": 100}  # chunks while the policy may move
SHARE = 0.7
TRIGGER_MS = 200
WARM_CHUNKS = 2
EVEN = 0.95  # two chunks differ by as much
# What the policy brings after either start, in words and figures of the thesis, and from when on that counts.
LIFTS = {"round_robin": ("by up to 100%", "2", 1.5), "grouping": ("by 5 to 10%", "1.05 to 1.1", 1.03)}
DECIDE_S = 6
CONTROL = {
    "policy": "dcape",
    "options": {"every": DECIDE_S, "window": 2, "at_once": 1},
    "every": "2 seconds",
    "limits": {"rest": "30 seconds"},
}


@dataclass(frozen=True)
class Sections:
    """Tuples per second while a join moves to and fro, and while it rests; one after the other in the same run."""

    moving: tuple[float, ...]
    still: tuple[float, ...]
    moves: int


@dataclass(frozen=True)
class Redistributed:
    """Tuples per second before and after, by chunk."""

    static: tuple[float, ...]
    policy: tuple[float, ...]
    moves: int


# --- moving to and fro ------------------------------------------------------------------------------------------------


def shuttled(place: Machines, plan: LivePlan, repetitions: int, progress: Progress) -> Sections:
    folder = place.folder / "shuttled"
    names = place.names
    running = start(job(plan, folder, place.definitions(names), units(plan, names, "round_robin"), TRIGGER_MS))
    moving, still = [], []
    with running:
        driver = LiveDriver(running, LiveSource(plan, folder, 0))
        shuttle = _Shuttle(running, plan.chunk_s, names)
        for _ in range(WARM_CHUNKS):
            driver.chunk()
        # There and back once, so that both nodes have a carrier for it in either kind of section.
        shuttle.section(driver)
        shuttle.rest(driver)
        before = _moves(running)
        with place.capped(names, SHARE):
            driver.chunk()
            for n in range(repetitions):
                progress(f"to and fro, {n + 1} of {repetitions}", 0.5 * n / repetitions)
                chunks = shuttle.section(driver)
                moving.append(plan.chunk_rows * len(chunks) / sum(chunks))
                shuttle.rest(driver)
                chunks = [driver.chunk() for _ in chunks]
                still.append(plan.chunk_rows * len(chunks) / sum(chunks))
        return Sections(tuple(moving), tuple(still), _moves(running) - before)


class _Shuttle:
    def __init__(self, running: Towpath, chunk_s: int, nodes: Sequence[str]) -> None:
        self._running = running
        self._every = max(1, EVERY_S // chunk_s)  # chunks
        self._nodes = nodes

    def section(self, driver: LiveDriver) -> list[float]:
        """Seconds for each chunk while it moves there and back."""
        found: list[float] = []
        for _ in range(MOVES):
            found += self.rest(driver)
            self._running.move(MOVED, next(name for name in self._nodes if name != self._here()))
            found += [driver.chunk() for _ in range(self._every)]
        return found

    def rest(self, driver: LiveDriver) -> list[float]:
        """Chunks until no move is under way."""
        found: list[float] = []
        while any(move.step in OPEN for move in self._running.engine.controller.state.moves.values()):
            found.append(driver.chunk())
        return found

    def _here(self) -> str:
        controller = self._running.engine.controller
        query = controller.queries.running.get(MOVED)
        assert query is not None, "it is in the job"
        return controller.known.node_of(controller.state.parts_of(query.id)[0].fragment)


def _moves(running: Towpath) -> int:
    """That have passed their fence."""
    return sum(m.step in (MoveStep.DRAINING, MoveStep.DONE) for m in running.engine.controller.state.moves.values())


# --- a policy ---------------------------------------------------------------------------------------------------------


def redistributed(
    place: Machines, plan: LivePlan, planner: str, deciding: int, repetitions: int, progress: Progress
) -> Redistributed:
    """From one start: as it is, and after the policy had so many chunks of time."""
    name = planner.replace("_", " ")
    progress(f"{name} without the policy", 0.5)
    static, _ = _steered(place, plan, planner, None, 1, repetitions, silent)
    control = ControlDef.model_validate(CONTROL)
    policy, moves = _steered(
        place,
        plan,
        planner,
        control,
        deciding,
        repetitions,
        lambda text, done: progress(f"{name}, {text}", 0.6 + 0.4 * done),
    )
    return Redistributed(static, policy, moves)


def _steered(
    place: Machines,
    plan: LivePlan,
    planner: str,
    control: ControlDef | None,
    before: int,
    repetitions: int,
    progress: Progress,
) -> tuple[tuple[float, ...], int]:
    """Tuples per second of chunks that follow so many others, and how many moves there were until then."""
    names = place.names
    folder = place.folder / f"{planner}-{'policy' if control else 'static'}"
    homes = units(plan, names, planner)
    with start(job(plan, folder, place.definitions(names), homes, TRIGGER_MS, control)) as running:
        driver = LiveDriver(running, LiveSource(plan, folder, 0))
        for _ in range(WARM_CHUNKS):
            driver.chunk()
        with place.capped(names, SHARE):
            for n in range(before):
                progress(f"chunk {n + 1} of {before}, {_moves(running)} moves", n / before)
                driver.chunk()
            return tuple(plan.chunk_rows / driver.chunk() for _ in range(repetitions)), _moves(running)


# --- the report -------------------------------------------------------------------------------------------------------


def redistribution(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """On Spark nodes: moving a stateful join costs no throughput; what the policy brings after a bad start."""
    with machines(2, progress) as place:
        sections = shuttled(place, SHUTTLED[scale], len(seeds), progress)
        found = {
            planner: redistributed(place, SKEWED[scale], planner, DECIDING[scale], len(seeds), progress)
            for planner in STARTS[scale]
        }
    return report(sections, found, scale, len(seeds))


def report(sections: Sections, found: Mapping[str, Redistributed], scale: Scale, repetitions: int) -> ExperimentReport:
    shuttle, skewed = SHUTTLED[scale], SKEWED[scale]
    return ExperimentReport(
        statements=_statements(sections, found),
        tables=(_table(sections, found),),
        plots=(_plot(sections, found),),
        scaled_down=(
            f"The join moves every {EVERY_S} s of event time with a window of {WINDOW_S} s, as in the thesis. Event "
            f"time passes as fast as two nodes with {SHARE:g} of a core each can read {shuttle.groups} joins: "
            f"{repetitions} times {MOVES} moves instead of 30 minutes.",
            f"The policy starts from {skewed.groups} joins and {skewed.cheap} filters over two nodes, decides every "
            f"{DECIDE_S} s, and has {DECIDING[scale]} chunks of {skewed.chunk_s} s of event time.",
            CAPPED,
        ),
        assumed=(
            "Throughput is what nodes read at most: a chunk arrives when all queries have read the one before.",
            "Both nodes run a carrier for the join that moves, so that only the movement is seen, as in section 6.3.1.",
            "Round robin deals joins and filters out in turns, so that all joins are on one node. The thesis' own "
            "round robin put 3 of 5 joins on one of several processors.",
            "The policy is D-CAPE's manager with the defaults for Spark: it compares the measured work and "
            "balances it, one move at a time. Spark's nodes send nothing to each other, so an output rate over the "
            "network, which the degradation policy looks at, is not there.",
        ),
        explained=(
            "A move costs that both nodes run the join until the window of the fence has passed, and that the node it "
            "comes from goes on reading. What is measured as lost is this work.",
        ),
    )


def _statements(sections: Sections, found: Mapping[str, Redistributed]) -> tuple[Statement, ...]:
    moving = Statement.over(
        f"Moving a stateful join every 60 s costs no throughput: moving against resting ({EVEN} and more counts)",
        "1",
        [moving / still for moving, still in zip(sections.moving, sections.still, strict=True)],
        lambda mean: mean >= EVEN,
    )
    return (moving, *(_lifted(planner, seen) for planner, seen in found.items()))


def _lifted(planner: str, seen: Redistributed) -> Statement:
    gain, paper, least = LIFTS[planner]
    before = fmean(seen.static)
    return Statement.over(
        f"The policy lifts {planner.replace('_', ' ')} {gain}: throughput after against before "
        f"({least:g} and more counts)",
        paper,
        [after / before for after in seen.policy],
        lambda mean: mean >= least,
    )


def _table(sections: Sections, found: Mapping[str, Redistributed]) -> Table:
    rows = [("a join to and fro", fmean(sections.still), fmean(sections.moving), sections.moves)]
    rows += [(f"policy after {name.replace('_', ' ')}", *_figures(seen)) for name, seen in found.items()]
    return Table("Tuples read per second", ("", "without", "with", "moves"), tuple(rows))


def _figures(seen: Redistributed) -> tuple[float, float, int]:
    return fmean(seen.static), fmean(seen.policy), seen.moves


def _plot(sections: Sections, found: Mapping[str, Redistributed]) -> Bars:
    groups = ("a join to and fro", *(f"policy after {name.replace('_', ' ')}" for name in found))
    without = (fmean(sections.still), *(fmean(seen.static) for seen in found.values()))
    with_moves = (fmean(sections.moving), *(fmean(seen.policy) for seen in found.values()))
    series = (Series("without moves", without), Series("with moves", with_moves))
    return Bars("Throughput without and with moves (Figs. 6.3 to 6.6)", "tuples read per second", groups, series)
