"""The state of a running job on a screen: for `status` and `top`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from towpath.api.figures import QueryCost
from towpath.cli.output import (
    CARRIER_FIGURES,
    carrier_figures,
    clock_time,
    counted,
    event_time,
    late_text,
    seconds_text,
)
from towpath.control.state.history import SavedEntry
from towpath.service.messages import HistoryEntry, JobStatus, MoveStatus, QueryStatus


def _numbers(*names: str) -> list[Column]:
    return [Column(name, justify="right") for name in names]


def view(status: JobStatus, most_moves: int | None = None) -> RenderableType:
    parts: list[RenderableType] = [headline(status), _nodes(status), _carriers(status)]
    if status.ways:
        parts.append(_ways(status))
    if status.moves:
        parts.append(_moves(status.moves, most_moves))
    parts += [Text(f"set aside: {name}: {why}") for name, why in status.aside.items()]
    parts += [Text(f"fails, and is tried again: {trouble}") for trouble in status.troubles]
    return Group(*parts)


def headline(status: JobStatus) -> str:
    return (
        f"{status.store}: {counted(status.queries, 'query', 'queries')}, {status.rows_per_s:,.0f} rows/s in, "
        f"{status.results_per_s:,.0f} results/s, {status.results:,} results, trigger {seconds_text(status.trigger_s)}, "
        f"event time {event_time(status.event_us)}, {late_text(status.late, status.late_by_stream, status.unheard)}, "
        f"{status.rejected:,} rejected, {counted(len(status.moves), 'move', 'moves')} under way"
    )


def _nodes(status: JobStatus) -> Table:
    table = Table("node", "type", "state", *_numbers("carriers", "fragments", "rows/s"))
    for n in status.nodes:
        table.add_row(n.name, n.type, n.state, f"{n.carriers:,}", f"{n.fragments:,}", f"{n.rows_per_s:,.0f}")
    return table


def _ways(status: JobStatus) -> Table:
    table = Table("from", "to", *_numbers("latency"), "known", *_numbers("streams", "bytes/s", "delay"))
    for w in status.ways:
        latency = f"{w.latency_s * 1000:,.1f} ms"
        delay = seconds_text(w.delay_s)
        table.add_row(w.source, w.target, latency, w.known, f"{w.streams:,}", f"{w.bytes_per_s:,.0f}", delay)
    return table


def _carriers(status: JobStatus) -> Table:
    table = Table("carrier", "node", "kind", *_numbers(*CARRIER_FIGURES))
    for carrier in status.running:
        table.add_row(carrier.id, carrier.node, carrier.kind, *carrier_figures(carrier))
    return table


def _moves(moves: Sequence[MoveStatus], most: int | None) -> Table:
    table = Table("move", "fragment", "used by", "from", "to", "step", "fence", "reason")
    for m in moves[:most]:
        fence = event_time(m.fence_us)
        here, there = (m.source, m.target) if m.source != m.target else m.carriers
        table.add_row(str(m.number), str(m.fragment), m.used_by, here, there, m.step, fence, m.reason)
    if most is not None and len(moves) > most:
        table.caption = f"and {len(moves) - most:,} more"
    return table


def queries_table(queries: Sequence[QueryStatus]) -> Table:
    table = Table("query", "state", "nodes", "fragments")
    for q in queries:
        table.add_row(q.name, q.state, ", ".join(q.nodes), ", ".join(map(str, q.fragments)))
    return table


def costs_table(costs: Sequence[QueryCost]) -> Table:
    estimates = ("estimated state rows", "estimated share", "estimated ms/trigger")
    table = Table("query", "nodes", "carriers", *_numbers("shared with", "rows/trigger", *estimates))
    for c in costs:
        shares = (f"{c.estimated_share_of_carrier:.1%}", f"{1000 * c.estimated_seconds_per_trigger:,.1f}")
        rows = (f"{c.shared_with:,}", f"{c.rows_per_trigger:,.1f}", f"{c.estimated_state_rows:,.0f}")
        table.add_row(c.name, ", ".join(c.nodes), ", ".join(c.carriers), *rows, *shares)
    return table


def history_table(entries: Sequence[HistoryEntry | SavedEntry]) -> Table:
    table = Table("at", "what", "why and where")
    for entry in entries:
        table.add_row(clock_time(entry.at_us), entry.kind, entry.text)
    return table
