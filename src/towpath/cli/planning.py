"""The work of `towpath plan`: planners are chosen, given their options, and run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from towpath import planners
from towpath.cli.failures import FAILED
from towpath.cli.outcomes import Outcome, sizes, sizes_text, violations
from towpath.cli.output import MESSAGES, print_data, print_json, working
from towpath.errors import TowpathError
from towpath.placement.check import check
from towpath.placement.costs import METRICS
from towpath.placement.problem import Placement, Problem
from towpath.problems.dump import write_placement


def chosen(planner: str | None, compare: str | None, check_only: bool) -> list[str]:
    if [planner is not None, compare is not None, check_only].count(True) != 1:
        raise click.UsageError(
            f"use one of --planner, --compare and --check-only; the planners are: {planners.listed()}"
        )
    if check_only:
        return []
    if compare == "all":
        lacking = planners.lacking()
        return [name for name in planners.available() if name not in lacking]
    names = [name.strip() for name in (planner or compare or "").split(",") if name.strip()]
    for name in names:
        planners.get(name)
    if not names:
        raise click.UsageError("--compare needs names of planners with commas between them, or all")
    return list(dict.fromkeys(names))


def settings_of(settings: Sequence[str]) -> dict[str, str]:
    for text in settings:
        if "=" not in text:
            raise click.UsageError(f"--set expects KEY=VALUE, got {text!r}")
    return {key.strip(): value.strip() for key, _, value in (text.partition("=") for text in settings)}


def options_of(names: Sequence[str], texts: Mapping[str, str], seed: int | None) -> dict[str, Any]:
    """The options of each planner. When planners are compared, each takes those that it has."""
    known = {name: {f.name for f in dataclasses.fields(planners.get(name).options)} for name in names}
    nobodys = [key for key in texts if not any(key in of_planner for of_planner in known.values())]
    if len(names) > 1 and nobodys:
        raise click.UsageError(f"none of these planners has the option {', '.join(nobodys)}")
    options = {}
    for name in names:
        own = {key: value for key, value in texts.items() if key in known[name] or len(names) == 1}
        if seed is not None and "seed" in known[name]:
            own.setdefault("seed", str(seed))
        options[name] = planners.options(name, own)
    return options


def write(placement: Placement, out: Path) -> None:
    try:
        write_placement(placement, out)
    except OSError as error:
        raise TowpathError(f"{out} cannot be written: {error.strerror or error}; name another file") from error
    MESSAGES.print(f"placement written to {out}", soft_wrap=True)


# --- doing it --------------------------------------------------------------------------------------------------------


def left_out() -> list[Outcome]:
    """The planners that `--compare all` cannot run here, and why."""
    return [Outcome(name, failure=str(lack)) for name, lack in planners.lacking().items()]


def run_all(problem: Problem, options: Mapping[str, Any], keep_failures: bool) -> tuple[list[Outcome], bool]:
    """The outcomes, and whether they were cut short by Ctrl-C. A failure is raised unless `keep_failures`."""
    outcomes: list[Outcome] = []
    with working("planning") as say:
        try:
            for number, (name, chosen) in enumerate(options.items(), start=1):
                outcomes.append(_run(problem, name, chosen, say, f"({number} of {len(options)})"))
                if outcomes[-1].failure and not keep_failures:
                    raise TowpathError(outcomes[-1].failure)
        except KeyboardInterrupt:
            if not outcomes or not keep_failures:
                raise
            return outcomes, True
    return outcomes, False


def _run(problem: Problem, name: str, options: Any, say: Callable[[str], None], turn: str) -> Outcome:
    outcome = Outcome(name)
    say(f"planning with {name} {turn}")
    try:
        with outcome.timed("plan"):
            placement = planners.run(name, problem, options)
    except TowpathError as error:
        outcome.failure = str(error)
        return outcome
    outcome.placement = placement
    say(f"checking the placement of {name} {turn}")
    with outcome.timed("check"):
        outcome.violations = check(problem, placement)
    with outcome.timed("metrics"):
        for metric in METRICS:
            say(f"{metric} of {name} {turn}")
            outcome.metrics[metric] = METRICS[metric].value(problem, placement)
    return outcome


def check_only(problem: Problem, loaded: float, as_json: bool) -> None:
    outcome = Outcome("")
    with working("checking"), outcome.timed("check"):
        outcome.violations = check(problem, problem.current) if problem.current else []
    seconds = {"load": loaded, **outcome.seconds}
    ok = not outcome.violations
    if as_json:
        found = [dataclasses.asdict(violation) for violation in outcome.violations]
        print_json({"ok": ok, "problem": sizes(problem), "seconds": seconds, "violations": found})
    else:
        placed = "" if problem.current else "; there is no placement in it"
        times = ", ".join(f"{step} {value:.2f} s" for step, value in seconds.items())
        said = "ok" if ok else f"the placement in the file has {len(outcome.violations):,} violations"
        print_data(*violations(outcome.violations), f"{said}: {sizes_text(problem)}{placed} ({times})")
    if not ok:
        click.get_current_context().exit(FAILED)
