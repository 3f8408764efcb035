"""Whether queries say that they answer for the event times that they were asked to answer for.

The model knows what had arrived, and was read, before a query came. What has come by the time that everybody has had
something to read afterwards is as late as it may begin; a window or the reach of a join may lie between.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf

from towpath.lab.testing.recording import Recording
from towpath.lab.testing.workload import DrawnQuery
from towpath.lang import parse
from towpath.lang.query import Query, Select
from towpath.verify.answer import AnswerVersion, Validity


def odd(recording: Recording, query: DrawnQuery, versions: Sequence[AnswerVersion]) -> str | None:
    """What is wrong with what a query's versions say, if anything is."""
    if not query.goes_on:
        return _gap(versions) if query.withdraw is None else None
    for select, valid in enumerate(versions[-1].validity):
        if valid.until_us is not None or valid.ceded_us is not None:
            return f"ends: {valid}"
        if query.begins.now and (wrong := _not_now(recording, query, select, valid)):
            return wrong
        if not query.begins.now and not (valid.settled and valid.from_us == query.begins.us):
            return f"begins elsewhere: {valid}"
    return None


def _not_now(recording: Recording, query: DrawnQuery, select: int, valid: Validity) -> str | None:
    latest_us = _latest_us(recording, query)
    if not valid.settled:
        return None if latest_us is None else f"does not begin: {valid}"
    begins_us = -inf if valid.from_us is None else valid.from_us
    if begins_us < _earliest_us(recording, query, select):
        return f"begins in the past: {valid}"
    return f"begins later than {latest_us}: {valid}" if latest_us is not None and begins_us > latest_us else None


def _gap(versions: Sequence[AnswerVersion]) -> str | None:
    """Each version begins where the one before ends, if it begins at all."""
    for before, after in pairwise(versions):
        ends = {
            valid.until_us if valid.ceded_us is None else valid.ceded_us for valid in before.validity if valid.settled
        }
        begins = {valid.from_us if valid.settled else None for valid in after.validity}
        if ends != begins or len(ends) > 1:
            return f"versions do not meet: {before} {after}"
    if any(valid.until_us is not None or valid.ceded_us is not None for valid in versions[-1].validity):
        return f"ends: {versions[-1]}"
    return None


def _earliest_us(recording: Recording, query: DrawnQuery, select: int) -> float:
    """Above all that was known of the streams of a SELECT."""
    parsed = parse(query.sql, recording.known)
    return _newest_us(recording, sorted(parsed.streams_of(parsed.selects[select])), query.submit) + 1


def _latest_us(recording: Recording, asked: DrawnQuery) -> float | None:
    """None: it may be that it never begins, since some stream that it is read with has nothing more to come."""
    query = parse(asked.sql, recording.known)
    read = {recording.catalog[name].schema_class for name in _streams(query)}
    names = [name for name, stream in recording.catalog.items() if stream.schema_class in read]
    silent = set(names)
    for then in range(asked.submit, len(recording.chunks)):
        silent -= {name for name in names if recording.times(then, name)}
        if not silent:
            return _newest_us(recording, names, then + 1) + 1 + _reach_us(query)
    return None


def _streams(query: Query) -> list[str]:
    return sorted(query.streams)


def _newest_us(recording: Recording, names: list[str], phases: int) -> float:
    times = (time for phase in range(phases) for name in names for time in recording.times(phase, name))
    return max(times, default=-inf)


def _reach_us(query: Query) -> int:
    def reach_us(select: Select) -> int:
        return (select.window.range_us if select.window else 0) + max(i.range_us or 0 for i in select.inputs)

    # At most one above the other.
    return sum(reach_us(view.select) for view in query.views) + max(reach_us(select) for select in query.selects)
