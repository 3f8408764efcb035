"""Compiled: what happens to tuples between two acts of the control plane.

A node is one FIFO server. The parcel at the head of its queue goes through the fragments there that read it, one after
the other: each takes it through its operators to the end, and what it makes leaves when it is done. What another
fragment on the same node reads is next in turn, so that an input tuple of a node is fully processed before the next one
(Zhou et al., section 2.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from towpath.lab.sim.departures import hand_out, release
from towpath.lab.sim.dice import FIRST, GAP, drawn, mix, unit
from towpath.lab.sim.parcels import (
    ARRIVES,
    CALLED,
    ENTERS,
    ERRAND,
    FINISHES,
    FLAG,
    RECEIVED,
    RESUMES,
    TUPLE,
    append,
    copy_parcel,
    count_in,
    drop_first_event,
    drop_head,
    drop_parcel,
    new_parcel,
    prepend,
    report,
    schedule,
)
from towpath.lab.sim.service import execute
from towpath.lab.sim.tables import NOBODY, Tables

REACHED, REPORTED, FULL = 0, 1, 2  # why `advance` returns


@njit(cache=True)
def advance(t: Tables, until: float) -> int:
    """All events before `until`, or up to the first one that has something to report, or until a table is full."""
    clock = t.clock[0]
    while clock.events > 0:
        event = t.events[0]
        time, kind, subject, life = event.time, event.kind, event.subject, event.life
        if time >= until:
            break
        if clock.unused < clock.room or len(t.events) - clock.events < clock.room:
            return FULL
        drop_first_event(t)
        clock.now = time
        clock.done += 1
        if kind == FINISHES:
            if life == t.nodes[subject].lives:
                _finish(t, subject, time)
        elif kind == ENTERS:
            _enter(t, subject, time)
        elif kind == CALLED:
            _wake(t, subject, time)
        else:
            _arrive(t, subject, time, kind)
        if clock.reports > 0:
            return REPORTED
    clock.now = until
    return REACHED


# --- arrivals --------------------------------------------------------------------------------------------------------


@njit(cache=True)
def start(t: Tables) -> None:
    """The first tuple of each stream. Constant intervals begin anywhere in one, else all streams would go in step."""
    for s in range(len(t.streams)):
        stream = t.streams[s]
        key = mix(stream.seed, FIRST)
        gap = drawn(stream.poisson, key) if stream.poisson else unit(key)
        schedule(t, _next_entry(t, s, 0.0, gap), ENTERS, s, 0)


@njit(cache=True, error_model="numpy")
def _next_entry(t: Tables, s: int, time: float, gap: float) -> float:
    """When a stream's rate, which changes by its profile, has summed up to `gap` tuples from `time` on."""
    stream = t.streams[s]
    need = gap / stream.rate
    while stream.segment < stream.end_segment:
        segment = t.segments[stream.segment]
        if segment.factor > 0.0 and time + need / segment.factor <= segment.until:
            return time + need / segment.factor
        need -= (segment.until - time) * segment.factor
        time = segment.until
        stream.segment += 1
    return np.inf


@njit(cache=True)
def _enter(t: Tables, s: int, time: float) -> None:
    stream = t.streams[s]
    key = mix(stream.seed, np.uint64(stream.tuples))
    stream.tuples += 1
    schedule(t, _next_entry(t, s, time, drawn(stream.poisson, mix(key, GAP))), ENTERS, s, 0)
    if t.nodes[stream.node].alive == 0:
        t.clock[0].lost_at_entry += 1
        return
    p = new_parcel(t)
    parcel = t.parcels[p]
    parcel.kind, parcel.point, parcel.place, parcel.tuples = TUPLE, s, NOBODY, 1
    parcel.key, parcel.stream, parcel.born, parcel.work = key, s, time, 0.0
    if hand_out(t, p, stream.node, time):
        _queue(t, p, stream.node, time)
    else:
        drop_parcel(t, p)
        _wake(t, stream.node, time)


@njit(cache=True)
def _arrive(t: Tables, p: int, time: float, kind: int) -> None:
    parcel = t.parcels[p]
    n = parcel.node
    node = t.nodes[n]
    if kind == ARRIVES and node.bandwidth_in < np.inf:  # errands too, or they would overtake what they follow
        size = parcel.tuples * t.points[parcel.point].bytes if parcel.kind == TUPLE else 0.0
        node.in_free = max(node.in_free, time) + size / node.bandwidth_in
        schedule(t, node.in_free, RECEIVED, p, 0)
    else:
        if parcel.kind == TUPLE and node.alive:
            node.transfers += parcel.tuples * node.transfer_cost
        _queue(t, p, n, time)


@njit(cache=True)
def _queue(t: Tables, p: int, n: int, time: float) -> None:
    parcel, node = t.parcels[p], t.nodes[n]
    if parcel.kind == FLAG or (parcel.kind == ERRAND and node.alive == 0):
        report(t, parcel.errand)
        drop_parcel(t, p)
    elif node.alive == 0:
        t.clock[0].lost_at_nodes += parcel.tuples
        drop_parcel(t, p)
    else:
        append(t, n, p)
        _wake(t, n, time)


@njit(cache=True)
def _wake(t: Tables, n: int, time: float) -> None:
    if t.nodes[n].serving == 0 and t.nodes[n].alive:
        _serve(t, n, time)


# --- service ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _serve(t: Tables, n: int, time: float) -> None:
    node = t.nodes[n]
    while node.first != NOBODY or node.transfers > 0.0:
        if node.transfers > 0.0:
            work, node.transfers = node.transfers, 0.0
            _begin(t, n, time, work)
            return
        p = node.first
        parcel = t.parcels[p]
        if parcel.kind == ERRAND:
            errand, work = parcel.errand, parcel.work
            drop_head(t, n)
            if work > 0.0:
                node.errand = errand
                _begin(t, n, time, work)
                return
            report(t, errand)
            continue
        if parcel.kind == RESUMES:
            place = t.places[parcel.point, parcel.place]
            drop_head(t, n)
            _resume(t, n, place)
            continue
        if parcel.position == parcel.end:
            drop_head(t, n)
            continue
        r = parcel.position
        parcel.position += 1
        fragment = t.readers[r].fragment
        s = _place(t, fragment, n, parcel.version)
        if s == NOBODY:
            continue
        if t.places[fragment, s].waiting:
            _hold(t, p, r, fragment, s)
            continue
        work = execute(t, n, p, t.readers[r].operator, s)
        if work > 0.0:
            _begin(t, n, time, work)
            return
        release(t, n, time)
    node.serving = 0


@njit(cache=True, error_model="numpy")
def _begin(t: Tables, n: int, time: float, work: float) -> None:
    node = t.nodes[n]
    node.serving = 1
    seconds = work / node.cpu
    node.busy += seconds
    node.free = time + seconds
    schedule(t, node.free, FINISHES, n, node.lives)


@njit(cache=True)
def _finish(t: Tables, n: int, time: float) -> None:
    node = t.nodes[n]
    if node.errand != NOBODY:
        report(t, node.errand)
        node.errand = NOBODY
    release(t, n, time)
    _serve(t, n, time)


@njit(cache=True)
def _place(t: Tables, fragment: int, n: int, version: int) -> int:
    """Where on this node the fragment takes in what was sent by that version."""
    for s in range(t.places.shape[1]):
        place = t.places[fragment, s]
        if place.node == n and place.since <= version and version < place.until:
            return s
    return NOBODY


@njit(cache=True)
def _hold(t: Tables, p: int, r: int, fragment: int, s: int) -> None:
    """The fragment's state is still under way: the parcel waits, for this reader alone."""
    place = t.places[fragment, s]
    q = copy_parcel(t, p)
    t.parcels[q].position, t.parcels[q].end = r, r + 1
    if place.first == NOBODY:
        place.first = q
    else:
        t.parcels[place.last].next = q
    place.last = q


@njit(cache=True)
def hasten(t: Tables, f: int, s: int, n: int, errand: int) -> None:
    """What a place has in the queue of its node goes to the head, in its order, and an errand behind it.

    A parcel that other fragments read, too, is divided: they get theirs where it was.
    """
    node = t.nodes[n]
    first = last = before = NOBODY
    p = node.first
    while p != NOBODY:
        parcel = t.parcels[p]
        following = parcel.next
        begin, end = _readers_of(t, p, f)
        if begin == end or _place(t, f, n, parcel.version) != s:
            before, p = p, following
            continue
        if begin == parcel.position and end == parcel.end:  # nobody else's: taken out of the queue
            q = p
            if before == NOBODY:
                node.first = following
            else:
                t.parcels[before].next = following
            if node.last == p:
                node.last = before
        else:
            q = copy_parcel(t, p)
            t.parcels[q].position, t.parcels[q].end = begin, end
            count_in(t, n, q)
            if begin == parcel.position:
                parcel.position = end
            elif end < parcel.end:
                rest = copy_parcel(t, p)
                t.parcels[rest].position, t.parcels[rest].next = end, following
                count_in(t, n, rest)
                parcel.end, parcel.next = begin, rest
                if node.last == p:
                    node.last = rest
                p = rest
            else:
                parcel.end = begin
            before = p
        t.parcels[q].next = NOBODY
        if first == NOBODY:
            first = q
        else:
            t.parcels[last].next = q
        last = q
        p = following
    if first == NOBODY:
        first = errand
    else:
        t.parcels[last].next = errand
    t.parcels[errand].next, t.parcels[errand].node = node.first, n
    if node.first == NOBODY:
        node.last = errand
    node.first = first


@njit(cache=True)
def _readers_of(t: Tables, p: int, f: int) -> tuple[int, int]:
    """Of the readers to which a parcel still goes, those of one fragment: they stand together."""
    parcel = t.parcels[p]
    if parcel.kind != TUPLE:
        return 0, 0
    begin = parcel.position
    while begin < parcel.end and t.readers[begin].fragment != f:
        begin += 1
    end = begin
    while end < parcel.end and t.readers[end].fragment == f:
        end += 1
    return begin, end


@njit(cache=True)
def _resume(t: Tables, n: int, place: Any) -> None:
    """What was held is next in turn: it is older than anything for this fragment that the node has in its queue."""
    place.waiting = 0
    if place.first != NOBODY:
        prepend(t, n, place.first, place.last)
    place.first = place.last = NOBODY
