"""`towpath demo`: a market with hundreds of standing queries, and the proof that every answer is right."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from towpath.cli.failures import FAILED, keep_log
from towpath.cli.live import LiveView
from towpath.cli.output import MESSAGES, print_data, seconds_text, working
from towpath.cli.stopping import interrupt, on_stop
from towpath.lab.demo import FEWEST, QUERIES, SECONDS
from towpath.store.layout import Store
from towpath.store.private import share

if TYPE_CHECKING:  # Spark and DuckDB take their time to import, which `towpath --help` need not pay
    import pyarrow as pa

    from towpath.api.figures import Figures
    from towpath.lab.demo.market import Market
    from towpath.lab.demo.play import DemoRun, Scene
    from towpath.verify import Checked

LINE_EVERY_S = 5.0
SHOWN_DIFFERENCES = 10
SHORTEST_S = 10
AT_LEAST, LONG_ENOUGH = click.IntRange(min=FEWEST), click.IntRange(min=SHORTEST_S)


@click.command("demo", epilog="Example: towpath demo --queries 300 --seconds 70")
@click.option(
    "--queries", type=click.IntRange(min=FEWEST), default=QUERIES, show_default=True, help="Standing queries."
)
@click.option(
    "--seconds", type=click.IntRange(min=SHORTEST_S), default=SECONDS, show_default=True, help="How long to run."
)
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures here.")
@click.option("--keep", is_flag=True, help="Keep the store, to look at it with `towpath results`.")
@click.pass_context
def command(ctx: click.Context, queries: int, seconds: int, json_file: Path | None, keep: bool) -> None:
    """Run a made-up auction market with many standing queries, and check every answer against DuckDB.

    Three nodes run it. When all of it runs, a rush of greedy queries comes to one of them, and the policy moves
    fragments to the others while data flows. Later queries are submitted and withdrawn. Nothing is restarted for it.
    """
    with _store(keep) as store:
        keep_log(Store(store).logs)
        with on_stop(interrupt):
            report = _perform(queries, seconds, store)
        if json_file:
            json_file.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
            share(json_file)
        _print_report(report)
    if report["different"]:
        ctx.exit(FAILED)


@contextmanager
def _store(keep: bool) -> Iterator[Path]:
    """A new folder. It goes at the end, unless it is wanted or something failed that it can explain."""
    folder = Path(tempfile.mkdtemp(prefix="towpath-demo-"))
    try:
        yield folder
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if keep:
        MESSAGES.print(f"kept: {folder}; see `towpath results {folder}`", soft_wrap=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _perform(queries: int, seconds: int, store: Path) -> dict[str, Any]:
    begun = time.monotonic()
    with working(f"starting Spark and {queries:,} queries"):
        from towpath.lab.demo.market import Market
        from towpath.lab.demo.play import DemoRun

        market = Market.of(queries, seconds)
        play = DemoRun(market, store, os.cpu_count() or 2, begun)
    try:
        # Spark has put its own handler for Ctrl-C in place.
        with on_stop(interrupt):
            with LiveView(LINE_EVERY_S) as view:
                play.run(lambda: _show(view, play, market))
            running = play.with_memory()
            with working("draining: the streams end, all windows close"):
                play.drain()
            drained = play.scene()
    finally:
        with working("stopping"):
            play.stop()
    checked = _check(play, queries)
    return _report(play, market, running, drained, checked) | {"total_s": round(time.monotonic() - begun, 1)}


def _show(view: LiveView, play: DemoRun, market: Market) -> None:
    if view.due:
        scene = play.scene()
        view.show(lambda: _view(scene, market, *play.sample()), lambda: _line(scene))


def _check(play: DemoRun, total: int) -> list[Checked]:
    done: list[Checked] = []
    with LiveView(LINE_EVERY_S) as view:
        for checked in play.check():
            done.append(checked)
            if view.due:
                text = f"comparing with DuckDB: {len(done):,} of {total:,} queries"
                view.show(lambda text=text: _bar(text, len(done), total), lambda text=text: text)  # type: ignore[misc]
    return done


def _bar(text: str, completed: float, total: float) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_row(ProgressBar(total, min(completed, total), width=40), text)
    return grid


def _view(scene: Scene, market: Market, sql: str, newest: pa.Table) -> RenderableType:
    grid = Table.grid(padding=(0, 3))
    for name, value in _rows(scene):
        grid.add_row(Text(name, style="bold"), value)
    sample = Table(*newest.column_names, title=f"newest results of: {sql}", title_justify="left")
    for row in newest.to_pylist():
        sample.add_row(*map(str, row.values()))
    bar = _bar(f"{min(scene.elapsed_s, market.seconds):.0f} of {market.seconds} s", scene.elapsed_s, market.seconds)
    moves = [Text(f"moved: {text}", overflow="ellipsis", no_wrap=True) for text in scene.newest_moves]
    return Group(bar, grid, sample, *moves)


def _rows(scene: Scene) -> list[tuple[str, str]]:
    from towpath.lab.demo.market import TRIGGER_MS

    figures = scene.figures
    return [
        ("standing queries", f"{figures.queries:,}, run by {len(figures.carriers)} carriers (Spark streaming queries)"),
        ("rows in", _rows_in(scene)),
        ("results out", f"{figures.results_per_s:,.0f}/s, {figures.results:,} so far"),
        (
            f"trigger, of {TRIGGER_MS / 1000:g} s",
            f"median {seconds_text(figures.trigger_s)}, 95th percentile {seconds_text(figures.slowest_s)}",
        ),
        ("changed live", _changes(scene)),
        ("nodes", _nodes(scene)),
    ]


def _rows_in(scene: Scene) -> str:
    """A row counts when every carrier has processed it."""
    carriers = scene.figures.carriers
    ready = sum(carrier.event_us is not None for carrier in carriers)
    if ready < len(carriers):
        return f"{ready} of {len(carriers)} carriers have begun"
    return f"{scene.events_per_s:,.0f}/s, {scene.behind_s:.0f} s behind"


def _triggers(figures: Figures) -> str:
    from towpath.lab.demo.market import TRIGGER_MS

    median, slowest = seconds_text(figures.trigger_s), seconds_text(figures.slowest_s)
    return f"median {median}, 95th percentile {slowest}, one every {TRIGGER_MS / 1000:g} s"


def _changes(scene: Scene) -> str:
    return f"{scene.submitted} submitted, {scene.withdrawn} withdrawn, carriers restarted: {scene.figures.restarts}"


def _nodes(scene: Scene) -> str:
    nodes = ", ".join(f"{n.node} {n.load:.0%} busy with {n.fragments:,} fragments" for n in scene.nodes)
    return f"{nodes}; {scene.moved} fragments moved, {scene.moving} on their way"


def _line(scene: Scene) -> str:
    figures = scene.figures
    return (
        f"{scene.elapsed_s:4.0f} s: {figures.queries:,} queries on {len(figures.carriers)} carriers, "
        f"rows in: {_rows_in(scene)}, {figures.results_per_s:,.0f} results/s, "
        f"time of a trigger: {_triggers(figures)}; {_changes(scene)}; {_nodes(scene)}"
    )


def _report(play: DemoRun, market: Market, running: Scene, drained: Scene, checked: list[Checked]) -> dict[str, Any]:
    from towpath.lab.demo.market import TRIGGER_MS

    figures = drained.figures
    return {
        "queries": len(market.queries) + len(market.rush),
        "equal": sum(c.difference is None for c in checked),
        "different": {c.name: str(c.difference) for c in checked if c.difference is not None},
        "answers": sum(c.rows for c in checked),
        "carriers": {c.id: c.kind for c in figures.carriers},
        "carriers_restarted": figures.restarts,
        "submitted_live": drained.submitted,
        "withdrawn_live": drained.withdrawn,
        "fragments_moved": running.moved,
        "first_results_s": play.punctual.first_results_s,
        "caught_up_s": play.punctual.caught_up_s,
        "most_behind_s": play.punctual.most_behind_s,
        "nodes": {n.node: {"fragments": n.fragments, "load": round(n.load, 3)} for n in running.nodes},
        "seconds": market.seconds,
        "events": market.total_events,
        "events_per_s_when_ended": round(running.events_per_s),
        "late": figures.late,
        "trigger_s": TRIGGER_MS / 1000,
        "trigger_median_s": running.figures.trigger_s,
        "trigger_95th_percentile_s": running.figures.slowest_s,
        "heap_mb": round(running.heap_bytes / 1e6),
        "resident_mb": round(running.resident_bytes / 1e6),
    }


def _print_report(report: dict[str, Any]) -> None:
    table = Table(show_header=False)
    median, slowest = seconds_text(report["trigger_median_s"]), seconds_text(report["trigger_95th_percentile_s"])
    caught_up, behind = seconds_text(report["caught_up_s"]), seconds_text(report["most_behind_s"])
    for name, value in (
        ("events of 3 streams", f"{report['events']:,} in {report['seconds']} s, {report['late']:,} late"),
        ("standing queries", f"{report['queries']:,}"),
        ("carriers (Spark streaming queries)", f"{len(report['carriers'])}"),
        ("trigger", f"median {median}, 95th percentile {slowest}, of {report['trigger_s']:g} s"),
        ("submitted and withdrawn live", f"{report['submitted_live']} and {report['withdrawn_live']}"),
        ("fragments moved live", f"{report['fragments_moved']}, between {len(report['nodes'])} nodes"),
        ("first results", f"{seconds_text(report['first_results_s'])} after the start"),
        ("behind the market", f"caught up {caught_up} after the start, from then on {behind} behind at most"),
        ("carriers restarted", f"{report['carriers_restarted']}"),
        ("memory", f"{report['heap_mb']:,} MB of heap in use, {report['resident_mb']:,} MB resident in all processes"),
        ("rows of all answers", f"{report['answers']:,}"),
        ("time in all", f"{report['total_s']:.0f} s"),
    ):
        table.add_row(name, value)
    differences = [Text(f"{name}: {text}") for name, text in list(report["different"].items())[:SHOWN_DIFFERENCES]]
    print_data(table, *differences, f"{report['equal']:,} of {report['queries']:,} queries equal to DuckDB")
