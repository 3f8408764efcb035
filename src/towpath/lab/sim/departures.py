"""Compiled: where parcels go that a stream or a fragment made, and what is known of results."""

from __future__ import annotations

import numpy as np
from numba import njit

from towpath.lab.sim.dice import mix
from towpath.lab.sim.parcels import copy_parcel, cross, drop_parcel, prepend, send
from towpath.lab.sim.tables import NOBODY, Tables


@njit(cache=True)
def release(t: Tables, n: int, time: float) -> None:
    """What the fragment made leaves; what is read on this node comes next."""
    node = t.nodes[n]
    p = node.made_first
    node.made_first = node.made_last = NOBODY
    first = last = NOBODY
    while p != NOBODY:
        following = t.parcels[p].next
        parcel = t.parcels[p]
        parcel.next = NOBODY
        op = t.operators[parcel.point - len(t.streams)]
        if op.query != NOBODY and _is_first(t, op.fragment, parcel.place):
            _result(t, p, op.query, n, time)
        if not hand_out(t, p, n, time):
            drop_parcel(t, p)
        elif first == NOBODY:
            first = last = p
        else:
            t.parcels[last].next = p
            last = p
        p = following
    if first != NOBODY:
        prepend(t, n, first, last)


@njit(cache=True)
def hand_out(t: Tables, p: int, n: int, time: float) -> bool:
    """Sends a parcel once to every other node with a reader; whether there are readers on this one, too."""
    clock = t.clock[0]
    clock.stamp += 1
    parcel = t.parcels[p]
    point = t.points[parcel.point]
    parcel.version = clock.version
    parcel.position, parcel.end = point.first_reader, point.end_reader
    here = False
    for r in range(point.first_reader, point.end_reader):
        fragment = t.readers[r].fragment
        for s in range(t.places.shape[1]):
            place = t.places[fragment, s]
            if place.node == NOBODY or clock.version < place.since or clock.version >= place.until:
                continue
            m = place.node
            if m == n:
                here = True
            elif t.marks[m] != clock.stamp:
                t.marks[m] = clock.stamp
                if _is_read_from(t, p, m):
                    send(t, copy_parcel(t, p), n, m, _size(t, p, n, m), time)
    return here


@njit(cache=True)
def _size(t: Tables, p: int, n: int, m: int) -> float:
    """Bytes of a parcel; none if operators of equal signature make it, and another one's was sent there just before."""
    parcel = t.parcels[p]
    if parcel.point >= len(t.streams):
        shared = t.operators[parcel.point - len(t.streams)].shared
        if shared != NOBODY:
            key = mix(parcel.key, np.uint64(n))
            if t.sent[shared, m] == key:
                return 0.0
            t.sent[shared, m] = key
    return parcel.tuples * t.points[parcel.point].bytes


@njit(cache=True)
def _is_first(t: Tables, fragment: int, s: int) -> bool:
    """Of several copies the first that is alive counts."""
    for other in range(s - s % 2):
        place = t.places[fragment, other]
        if place.node != NOBODY and t.nodes[place.node].alive:
            return False
    return True


@njit(cache=True)
def _is_read_from(t: Tables, p: int, m: int) -> bool:
    """A fragment reads the copy of its input on its own node, else the first copy (as in placement/flows.py)."""
    parcel = t.parcels[p]
    if parcel.place == NOBODY or t.places.shape[1] == 2:
        return True
    fragment = t.operators[parcel.point - len(t.streams)].fragment
    if not _is_first(t, fragment, parcel.place):
        return False
    here = False
    for s in range(t.places.shape[1]):
        here = here or (s // 2 != parcel.place // 2 and t.places[fragment, s].node == m)
    return not here


@njit(cache=True)
def _result(t: Tables, p: int, q: int, n: int, time: float) -> None:
    parcel, query = t.parcels[p], t.queries[q]
    query.results += parcel.tuples
    delay = time - parcel.born  # d = t_out - t_in
    for i in range(query.first_path, query.end_path):
        path = t.paths[i]
        if path.stream != parcel.stream:
            continue
        path.tuples += 1
        path.delay += delay
        path.most = max(path.most, delay)
        if parcel.work > 0.0:
            path.measured += 1
            path.ratio += delay / parcel.work  # PR = d / p
        if query.sink == NOBODY:
            continue
        if query.sink != n and t.links[n, query.sink].up == 0:
            query.undelivered += parcel.tuples
            continue
        size = parcel.tuples * t.points[parcel.point].bytes
        arrived = time
        if query.sink != n:
            arrived = cross(t, n, query.sink, size, time)
            t.links[n, query.sink].result_bytes += size
            t.nodes[n].transfers += parcel.tuples * t.nodes[n].transfer_cost
        path.delivered += 1
        path.delivery += arrived - parcel.born
