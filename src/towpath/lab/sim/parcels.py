"""Compiled: the pool of parcels, the queues of nodes, the heap of events, and the way over a link."""

from __future__ import annotations

from typing import Any

from numba import njit

from towpath.lab.sim.tables import NOBODY, Tables

# Kinds of parcels: an errand is done in its turn, a flag is reported when it arrives, RESUMES lets held parcels go on.
TUPLE, ERRAND, FLAG, RESUMES = 0, 1, 2, 3
ENTERS, ARRIVES, RECEIVED, FINISHES, CALLED = 0, 1, 2, 3, 4  # kinds of events


@njit(cache=True)
def new_parcel(t: Tables) -> int:
    clock = t.clock[0]
    p = clock.free
    clock.free = t.parcels[p].next
    clock.unused -= 1
    t.parcels[p].next = NOBODY
    return p


@njit(cache=True)
def drop_parcel(t: Tables, p: int) -> None:
    clock = t.clock[0]
    t.parcels[p].next = clock.free
    clock.free = p
    clock.unused += 1


@njit(cache=True)
def copy_parcel(t: Tables, p: int) -> int:
    q = new_parcel(t)
    t.parcels[q] = t.parcels[p]
    t.parcels[q].next = NOBODY
    return q


@njit(cache=True)
def _earlier(a: Any, b: Any) -> bool:
    return a.time < b.time or (a.time == b.time and a.order < b.order)


@njit(cache=True)
def schedule(t: Tables, time: float, kind: int, subject: int, life: int) -> None:
    clock = t.clock[0]
    order = clock.order
    clock.order += 1
    i = clock.events
    clock.events += 1
    while i > 0:
        above = (i - 1) >> 1
        if t.events[above].time <= time:  # its order is lower in any case
            break
        t.events[i] = t.events[above]
        i = above
    event = t.events[i]
    event.time, event.order, event.kind, event.subject, event.life = time, order, kind, subject, life


@njit(cache=True)
def drop_first_event(t: Tables) -> None:
    clock = t.clock[0]
    clock.events -= 1
    count = clock.events
    last = t.events[count]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= count:
            break
        if below + 1 < count and _earlier(t.events[below + 1], t.events[below]):
            below += 1
        if not _earlier(t.events[below], last):
            break
        t.events[i] = t.events[below]
        i = below
    t.events[i] = last


@njit(cache=True)
def append(t: Tables, n: int, p: int) -> None:
    node, parcel = t.nodes[n], t.parcels[p]
    parcel.next = NOBODY
    if node.first == NOBODY:
        node.first = p
    else:
        t.parcels[node.last].next = p
    node.last = p
    count_in(t, n, p)


@njit(cache=True)
def prepend(t: Tables, n: int, first: int, last: int) -> None:
    """A chain of parcels goes to the head of a node's queue."""
    node = t.nodes[n]
    p = first
    while p != NOBODY:
        count_in(t, n, p)
        p = t.parcels[p].next
    t.parcels[last].next = node.first
    if node.first == NOBODY:
        node.last = last
    node.first = first


@njit(cache=True)
def count_in(t: Tables, n: int, p: int) -> None:
    parcel = t.parcels[p]
    parcel.node = n
    if parcel.kind == TUPLE:
        count(t, n, parcel.tuples, t.points[parcel.point].bytes)


@njit(cache=True)
def count(t: Tables, n: int, tuples: int, size: float) -> None:
    """So many tuples more, or less, wait at a node."""
    node, now = t.nodes[n], t.clock[0].now
    node.waited += node.queued * (now - node.queued_since)
    node.queued_since = now
    node.queued += tuples
    node.queued_bytes += tuples * size


@njit(cache=True)
def drop_head(t: Tables, n: int) -> None:
    node = t.nodes[n]
    p = node.first
    parcel = t.parcels[p]
    node.first = parcel.next
    if node.first == NOBODY:
        node.last = NOBODY
    if parcel.kind == TUPLE:
        count(t, n, -parcel.tuples, t.points[parcel.point].bytes)
    drop_parcel(t, p)


@njit(cache=True)
def report(t: Tables, errand: int) -> None:
    clock = t.clock[0]
    t.reports[clock.reports] = errand
    clock.reports += 1


@njit(cache=True, error_model="numpy")
def cross(t: Tables, source: int, target: int, size: float, time: float) -> float:
    """When something sent now arrives: after what the medium, its node, then its link carry; links keep the order.

    The medium comes first, so that it serves in the order of sending, which no other node's queue can delay.
    """
    node, link, clock = t.nodes[source], t.links[source, target], t.clock[0]
    clock.medium_free = max(clock.medium_free, time) + size / clock.medium
    node.out_free = max(node.out_free, clock.medium_free) + size / node.bandwidth_out
    link.free = max(link.free, node.out_free) + size / link.bandwidth
    link.arrives = max(link.arrives, link.free + link.latency)
    node.bytes_out += size
    t.nodes[target].bytes_in += size
    return link.arrives


@njit(cache=True)
def send(t: Tables, p: int, source: int, target: int, size: float, time: float) -> None:
    parcel, link = t.parcels[p], t.links[source, target]
    if parcel.kind == TUPLE and link.up == 0:
        t.clock[0].lost_on_links += parcel.tuples
        drop_parcel(t, p)
        return
    parcel.node = target
    if size > 0.0:
        link.bytes += size
        t.nodes[source].transfers += parcel.tuples * t.nodes[source].transfer_cost
    schedule(t, cross(t, source, target, size, time), ARRIVES, p, 0)
