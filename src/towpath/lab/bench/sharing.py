"""The benchmark: plain Spark against towpath, in one run, on the same data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from towpath.lab.bench import plain, shared, single, submission
from towpath.lab.bench.apart import apart, new_log
from towpath.lab.bench.plain import SETTINGS, SparkSetting
from towpath.lab.bench.quiet import Company, watched
from towpath.lab.bench.single import Backlog, Single
from towpath.lab.bench.steps import Limit, Measure, Pace, Say, find_limit, observe
from towpath.lab.bench.submission import LateSubmission
from towpath.lab.bench.workloads import KINDS

RATE = 5000


@dataclass(frozen=True)
class SharingPlan:
    """What to measure, and how thoroughly."""

    kinds: tuple[str, ...] = tuple(KINDS)
    rate: int = RATE
    cores: int = 2
    pace: Pace = field(default_factory=Pace)
    most: int = 200_000  # queries of towpath
    most_plain: int = 80
    first: dict[str, int] = field(default_factory=lambda: {"alerts": 50_000, "windows": 50_000, "joins": 5_000})
    first_plain: int = 5
    settings: tuple[SparkSetting, ...] = SETTINGS
    backlog: Backlog = field(default_factory=Backlog)
    running: int = 1000  # when one more is submitted


QUICK = SharingPlan(
    rate=500,
    pace=Pace(longest_trigger_s=60, warm_up_s=1, measure_s=2, least_triggers=2),
    most=20,
    most_plain=1,
    first={"alerts": 20, "windows": 20, "joins": 20},
    first_plain=1,
    settings=SETTINGS[:1],
    backlog=Backlog(files=2, rows=5000, rounds=1),
    running=20,
)


@dataclass(frozen=True)
class Comparison:
    """The two limits of a kind."""

    plain: Limit
    towpath: Limit
    setting: str  # of plain Spark, the best of those tried

    @property
    def ratio(self) -> float | None:
        return self.towpath.n / self.plain.n if self.plain.n else None


@dataclass(frozen=True)
class SharingReport:
    comparisons: dict[str, Comparison]
    singles: dict[str, Single]
    late: LateSubmission
    company: Company

    def to_json(self) -> dict[str, Any]:
        return {
            **{kind: _comparison(c) for kind, c in self.comparisons.items()},
            "single": {kind: round(s.ratio, 2) for kind, s in self.singles.items()},
            "submit": {
                "running": self.late.running,
                "triggers": self.late.triggers,
                "seconds": round(self.late.seconds, 2),
                "carriers_started": self.late.carriers_started,
            },
            "machine": self.company.to_json(),
        }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "plain": found.plain.n,
        "towpath": found.towpath.n if found.towpath.reached else f">={found.towpath.n}",
        "ratio": None if found.ratio is None else round(found.ratio, 1),
        "plain_setting": found.setting,
        "at_the_limit": {
            "plain": _measure(found.plain.best),
            "towpath": _measure(found.towpath.best),
        },
    }


def _measure(measure: Measure | None) -> dict[str, Any] | None:
    if measure is None:
        return None
    phases = {name: round(ms) for name, ms in measure.phases_ms.items()}
    return {"p95_seconds": round(measure.p95, 2), "state_rows": measure.state_rows, "phases_ms": phases}


ReportStep = Callable[[str, str, str], None]  # kind, column, text


def run(plan: SharingPlan, report: ReportStep) -> SharingReport:
    """Measures everything; `report` hears every step."""
    with watched() as watch:
        comparisons, singles, late = _measure_all(plan, report)
    return SharingReport(comparisons, singles, late, watch.company())


def _measure_all(
    plan: SharingPlan, report: ReportStep
) -> tuple[dict[str, Comparison], dict[str, Single], LateSubmission]:
    log = new_log()
    comparisons, singles = {}, {}
    for kind in plan.kinds:
        comparisons[kind] = _compare(kind, plan, log, report)
        say = partial(report, kind, "single")
        singles[kind] = apart(single.compare, kind, plan.backlog, plan.rate, plan.cores, log=log, say=say)
        say(f"{singles[kind].ratio:.2f}")
    say = partial(report, "submit", "towpath")
    late = apart(submission.submit_one, plan.running, plan.pace, plan.rate, plan.cores, log=log, say=say)
    say(f"{late.triggers} triggers, {late.carriers_started} carriers started")
    log.unlink()  # of use only when something failed
    return comparisons, singles, late


def _compare(kind: str, plan: SharingPlan, log: Path, report: ReportStep) -> Comparison:
    say = partial(report, kind, "plain")
    setting = _best_setting(kind, plan, log, say)
    theirs = apart(plain_limit, kind, setting, plan, log=log, say=say)
    say(str(theirs))
    say = partial(report, kind, "towpath")
    ours = apart(towpath_limit, kind, plan, log=log, say=say)
    say(str(ours))
    return Comparison(theirs, ours, setting.name)


def _best_setting(kind: str, plan: SharingPlan, log: Path, say: Say) -> SparkSetting:
    """The one with the shortest triggers for a few queries."""
    if len(plan.settings) == 1:
        return plan.settings[0]

    def p95(setting: SparkSetting) -> float:
        return apart(plain_trial, kind, setting, plan, log=log, say=say).p95

    return min(plan.settings, key=p95)


def plain_trial(kind: str, setting: SparkSetting, plan: SharingPlan, say: Say) -> Measure:
    with plain.opened(KINDS[kind], setting, plan.rate, plan.cores, say) as system:
        system.grow_to(plan.first_plain)
        return observe(system, plan.first_plain, plan.pace, say)


def plain_limit(kind: str, setting: SparkSetting, plan: SharingPlan, say: Say) -> Limit:
    opened = partial(plain.opened, KINDS[kind], setting, plan.rate, plan.cores, say)
    return find_limit(opened, plan.first_plain, plan.most_plain, plan.pace, say)


def towpath_limit(kind: str, plan: SharingPlan, say: Say) -> Limit:
    requests = shared.SharedRequests(KINDS[kind], say)
    opened = partial(shared.opened, requests, plan.rate, plan.cores)
    return find_limit(opened, plan.first[kind], plan.most, plan.pace, say)
