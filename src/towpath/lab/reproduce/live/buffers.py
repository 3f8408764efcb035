"""hummer-fig5: how long it takes to migrate a buffer, by its size (Figure 5), in the two ways there are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.stats import linregress

from towpath.lab.reproduce.live.buffer_source import EVENT_BYTES
from towpath.lab.reproduce.live.migrating import TRIGGER_MS, MigratingSeen, fences, restarts
from towpath.lab.reproduce.live.nodes import machines
from towpath.lab.reproduce.report import Cell, ExperimentReport, Lines, Progress, Scale, Series, Statement, Table

ROWS: Mapping[Scale, tuple[int, ...]] = {
    "tiny": (500, 1000),
    "default": (10_000, 50_000, 100_000, 150_000, 200_000),
    "full": (20_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000),
}
WINDOW_S: Mapping[Scale, int] = {"tiny": 2, "default": 5, "full": 30}
SCALED_DOWN = (f"Two nodes; buffers hold events of {EVENT_BYTES} bytes, as those of section 7.2.",)
ASSUMED = (
    "Sizes are those of the events' content (the paper: of the XML that is sent): rows in the state of Spark's "
    f"join times {EVENT_BYTES} bytes. The paper's text does not give its range of sizes.",
    "Both nodes are Spark Connect servers on one machine with one file system, so a checkpoint is read from there "
    "and not sent over a network. Nodes are not capped.",
    "By restart: from the request to stop until the other node has finished its first micro-batch, which loads the "
    "state.",
    "By fence: from the request until the other node answers (the fence is passed). That node runs queries of the same "
    "template before, as the nodes of a job with many queries do; one that does not reads the streams from their "
    "beginning first.",
    "A fence copies nothing: pairs that began before it are finished on the node before, which is free a window later.",
)
LINEAR, FLAT = 0.8, 1.5  # R^2 from which on it is a line; largest over smallest buffer, below which it is none


@dataclass(frozen=True)
class Line:
    seconds: float  # for a buffer of no size
    per_megabyte: float
    r2: float


def fit(seen: Sequence[tuple[float, float]]) -> Line:
    """The least squares of (megabytes, seconds)."""
    found = linregress([x for x, _ in seen], [y for _, y in seen])
    return Line(float(found.intercept), float(found.slope), float(found.rvalue) ** 2)


def buffers(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """On Spark nodes: time to migrate a buffer by its size, by restart from a checkpoint and by a fence."""
    sizes, window_s = ROWS[scale], WINDOW_S[scale]
    steps = 1 + len(sizes) + len(sizes) * len(seeds)  # a warm-up, moves of all repetitions at once, restarts
    done = 0

    def step_done() -> None:
        nonlocal done
        done += 1
        progress(f"{done} of {steps} steps", done / steps)

    with machines(2, progress) as place:
        moved = fences(place, sizes, len(seeds), window_s, step_done)
        restarted = restarts(place, sizes, len(seeds), window_s, step_done)
    return report(restarted, moved, len(seeds), window_s, scale)


def report(
    restarted: Sequence[MigratingSeen], moved: Sequence[MigratingSeen], repetitions: int, window_s: int, scale: Scale
) -> ExperimentReport:
    by_restart = fit([(s.megabytes, s.answers_s) for s in restarted])
    by_fence = fit([(s.megabytes, s.answers_s) for s in moved])
    return ExperimentReport(
        statements=_statements(restarted, moved, by_restart, repetitions, window_s),
        tables=(_lines_table(by_restart, by_fence), _table(restarted, moved, repetitions)),
        plots=(_plot(restarted, moved, repetitions),),
        scaled_down=SCALED_DOWN
        + ((f"Windows of {window_s} s, {repetitions} repetitions.",) if scale != "full" else ()),
        assumed=ASSUMED,
        explained=(
            "A fence takes some micro-batches, and a micro-batch takes longer the more state its join has. So a fence "
            "is not quite independent of the size, although nothing is copied.",
        ),
    )


def _statements(
    restarted: Sequence[MigratingSeen], moved: Sequence[MigratingSeen], line: Line, repetitions: int, window_s: int
) -> tuple[Statement, ...]:
    growth = [last.answers_s / first.answers_s for first, last in _ends(moved, repetitions)]
    ratio = [slow.answers_s / fast.answers_s for (_, slow), (_, fast) in _paired(restarted, moved, repetitions)]
    waited = [s.free_s - s.answers_s - window_s for s in moved]
    return (
        Statement(
            f"Migration time is linear in the buffer's size: R^2 of the line, by restart ({LINEAR} and more counts)",
            "linear",
            line.r2,
            0.0,
            line.r2 >= LINEAR and line.per_megabyte > 0,
        ),
        Statement.over(
            f"By a fence it does not depend on the size: largest over smallest buffer (below {FLAT} counts)",
            "grows with the size",
            growth,
            lambda mean: mean < FLAT,
        ),
        Statement.over(
            "A fence is faster than a restart: time of a restart over that of a fence, largest buffer",
            "-",
            ratio,
            lambda mean: mean > 1,
        ),
        Statement.over(
            "Until the node before is free: seconds beyond the window, by a fence (below 5 triggers counts)",
            "-",
            waited,
            lambda mean: mean < 5 * TRIGGER_MS / 1000,
        ),
    )


def _ends(seen: Sequence[MigratingSeen], repetitions: int) -> list[tuple[MigratingSeen, MigratingSeen]]:
    """The smallest and the largest buffer, for each repetition: what was seen is in the order of sizes."""
    return list(zip(seen[:repetitions], seen[-repetitions:], strict=True))


def _paired(
    one: Sequence[MigratingSeen], other: Sequence[MigratingSeen], repetitions: int
) -> list[tuple[tuple[MigratingSeen, MigratingSeen], tuple[MigratingSeen, MigratingSeen]]]:
    return list(zip(_ends(one, repetitions), _ends(other, repetitions), strict=True))


def _lines_table(by_restart: Line, by_fence: Line) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, line.seconds, line.per_megabyte * 1000, line.r2)
        for name, line in (("restart", by_restart), ("fence", by_fence))
    )
    return Table("Lines of least squares", ("way", "seconds at no size", "ms per megabyte", "R^2"), rows)


def _groups(seen: Sequence[MigratingSeen], repetitions: int) -> list[Sequence[MigratingSeen]]:
    return [seen[n : n + repetitions] for n in range(0, len(seen), repetitions)]


def _table(restarted: Sequence[MigratingSeen], moved: Sequence[MigratingSeen], repetitions: int) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            fmean(s.megabytes for s in slow),
            fmean(s.answers_s for s in slow),
            fmean(s.megabytes for s in fast),
            fmean(s.answers_s for s in fast),
            fmean(s.free_s for s in fast),
        )
        for slow, fast in zip(_groups(restarted, repetitions), _groups(moved, repetitions), strict=True)
    )
    heads = ("restart: MB", "until it answers (s)", "fence: MB", "until it answers (s)", "until the other is free (s)")
    return Table("Means over the repetitions", heads, rows)


def _plot(restarted: Sequence[MigratingSeen], moved: Sequence[MigratingSeen], repetitions: int) -> Lines:
    def series(name: str, seen: Sequence[MigratingSeen], pick: Callable[[MigratingSeen], float]) -> Series:
        groups = _groups(seen, repetitions)
        return Series(
            name,
            tuple(fmean(map(pick, group)) for group in groups),
            tuple(fmean(s.megabytes for s in group) for group in groups),
            tuple(stdev(map(pick, group)) if repetitions > 1 else 0.0 for group in groups),
        )

    return Lines(
        "Migration time by buffer size (Fig. 5)",
        "megabytes of events in the buffer",
        "seconds",
        (
            series("restart from the checkpoint", restarted, lambda s: s.answers_s),
            series("fence, until the other node answers", moved, lambda s: s.answers_s),
            series("fence, until the node before is free", moved, lambda s: s.free_s),
        ),
    )
