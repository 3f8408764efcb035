"""`towpath simulate`: what would happen to a problem's tuples, and what would a policy move?"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from towpath.cli.failures import STOPPED
from towpath.cli.output import MESSAGES, PATIENCE_S, json_option, load_problem, print_data, print_json, working
from towpath.cli.stopping import on_stop
from towpath.errors import TowpathError
from towpath.extras import require

if TYPE_CHECKING:  # the simulator takes a second to import, which `towpath --help` need not pay
    from towpath.lab.sim import Drift, Simulation, SimulationOutcome
    from towpath.placement.problem import Placement, Problem

LINE_EVERY_S = 5.0  # where there is no terminal to draw a bar on


@click.command("simulate", epilog="Example: towpath simulate examples/problem.yaml --planner producer --seconds 60")
@click.argument("problem_file", metavar="PROBLEM", type=click.Path(path_type=Path))
@click.option("--planner", metavar="NAME", help="Who places the fragments.  [default: the placement in the file]")
@click.option("--policy", metavar="NAME", default="static", show_default=True, help="Who moves them while data flows.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True)
@click.option("--seed", type=int, help="For all that is drawn, instead of the file's seed.")
@click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="planner.KEY or policy.KEY: an option of it."
)
@click.option("--arrivals", type=click.Choice(["constant", "poisson"]), default="constant", show_default=True)
@click.option("--service", type=click.Choice(["fixed", "exponential", "uniform"]), default="fixed", show_default=True)
@click.option(
    "--move", type=click.Choice(["pause", "drain", "fence"]), default="pause", show_default=True, help="How they move."
)
@click.option(
    "--latencies",
    "slices",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Latencies that change: a folder with a numbered series of matrix files.",
)
@click.option(
    "--slice",
    "slice_seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="How many seconds each matrix of --latencies holds.",
)
@click.option(
    "--window", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="In seconds."
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write tables and plots to this folder.")
@click.option("--format", "kind", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True)
@json_option
def command(
    problem_file: Path,
    planner: str | None,
    policy: str,
    seconds: float,
    seed: int | None,
    settings: tuple[str, ...],
    arrivals: Literal["constant", "poisson"],
    service: Literal["fixed", "exponential", "uniform"],
    move: Literal["pause", "drain", "fence"],
    slices: Path | None,
    slice_seconds: float,
    window: float,
    out: Path | None,
    kind: Literal["parquet", "csv"],
    as_json: bool,
) -> None:
    """Run PROBLEM's tuples through its operators in simulated time, while a policy moves fragments between nodes.

    PROBLEM is a problem file (`towpath docs placement`). The same seed gives the same results, byte by byte. Ctrl-C
    ends the simulation early and shows what happened so far.
    """
    require("lab", "towpath simulate")
    from towpath import planners, policies
    from towpath.lab.sim import Profile, Simulation

    policies.get(policy)
    texts = _settings(settings)
    problem = load_problem(problem_file, seed)
    placement = _placed(problem, planner, problem_file, _seeded(planners.get, planner, texts["planner"], seed))
    actors = policies.start(
        policy,
        problem,
        placement,
        policies.options(policy, _seeded(policies.get, policy, texts["policy"], seed)),
    )
    begin = time.monotonic()
    with working("preparing; what is simulated is compiled once, which takes half a minute"):
        simulation = Simulation(
            problem,
            placement,
            seconds,
            actors=actors,
            seed=seed or 0,
            profile=Profile(arrivals),
            service=service,
            faults=_drifts(slices, slice_seconds, problem),
            move=move,
            record=window,
        )
    with _progress(seconds) as progress:
        stopped = _run(simulation, progress)
    outcome = simulation.outcome()
    _show(outcome, {"planner": planner, "policy": policy, "took": time.monotonic() - begin}, as_json)
    if out is not None:
        _write(outcome, policies.get(policy).reported(actors), out, kind)
    if stopped:
        MESSAGES.print(f"stopped at {outcome.seconds:.3f} of {seconds:g} simulated seconds")
        click.get_current_context().exit(STOPPED)


def _drifts(folder: Path | None, seconds: float, problem: Problem) -> list[Drift]:
    from towpath.lab.sim import drift
    from towpath.problems.generate import matrix

    if folder is None:
        return []
    files, nodes = matrix.series(folder), len(problem.cluster.nodes)
    if not files:
        raise TowpathError(f"{folder} holds no numbered files, such as 1.txt; name a folder with a series of matrices")
    try:
        found = [matrix.read(file) for file in files]
    except ValueError as error:
        raise TowpathError(f"{error}; write round-trip times in ms with spaces between, a row for each node") from error
    for file, latencies in zip(files, found, strict=True):
        if len(latencies) != nodes:
            raise TowpathError(f"{file} has {len(latencies)} rows, expected one for each of the {nodes} nodes")
    return drift(found, seconds)


def _settings(settings: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"planner": {}, "policy": {}}
    for text in settings:
        key, equals, value = text.partition("=")
        whose, dot, name = key.strip().partition(".")
        if not (equals and dot and whose in found):
            raise click.UsageError(f"--set expects planner.KEY=VALUE or policy.KEY=VALUE, got {text!r}")
        found[whose][name] = value.strip()
    return found


def _seeded(get: Callable[[str], Any], name: str | None, texts: Mapping[str, str], seed: int | None) -> dict[str, str]:
    """With the seed, if a planner or policy has an option for one."""
    known = {field.name for field in dataclasses.fields(get(name).options)} if name else set()
    return {"seed": str(seed), **texts} if seed is not None and "seed" in known else dict(texts)


def _placed(problem: Problem, planner: str | None, path: Path, texts: Mapping[str, str]) -> Placement:
    from towpath import planners

    if planner is not None:
        with working(f"planning with {planner}"):
            return planners.run(planner, problem, planners.options(planner, texts))
    if problem.current is None:
        raise click.UsageError(f"there is no placement in {path}: name a --planner; there are {planners.listed()}")
    return problem.current


@contextmanager
def _progress(seconds: float) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal, a line now and then elsewhere."""
    columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.completed:.0f} of {task.total:g} s"))
    clocks = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, *clocks, console=MESSAGES, transient=True, disable=not MESSAGES.is_terminal) as bar:
        task = bar.add_task("", total=seconds)
        printed = time.monotonic() - LINE_EVERY_S + PATIENCE_S

        def report(at: float) -> None:
            nonlocal printed
            bar.update(task, completed=at)
            if not MESSAGES.is_terminal and time.monotonic() - printed >= LINE_EVERY_S:
                printed = time.monotonic()
                MESSAGES.print(f"simulated {at:.1f} of {seconds:g} s")

        yield report


def _run(simulation: Simulation, progress: Callable[[float], None]) -> bool:
    """Whether it was stopped."""
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        simulation.stop()

    with on_stop(stop):
        simulation.run(progress)
    return stopped


def _show(outcome: SimulationOutcome, asked: Mapping[str, Any], as_json: bool) -> None:
    from towpath.cli.simulated import summary, views

    if as_json:
        print_json({**asked, **summary(outcome)})
    else:
        print_data(*views(outcome))


def _write(
    outcome: SimulationOutcome, reported: Sequence[Mapping[str, object]], folder: Path, kind: Literal["parquet", "csv"]
) -> None:
    import pandas as pd

    from towpath.cli.simulated import plots
    from towpath.lab.reproduce.draw import save
    from towpath.lab.sim.outcome import write_table

    try:
        outcome.write(folder, kind)
        if reported:
            write_table(pd.DataFrame(reported), folder / f"reported.{kind}")
        for name, plot in plots(outcome).items():
            save(plot, folder / f"{name}.png")
            save(plot, folder / f"{name}.svg")
    except OSError as error:
        raise TowpathError(f"{folder} cannot be written: {error.strerror or error}; name another folder") from error
    MESSAGES.print(f"tables and plots written to {folder}", soft_wrap=True)
