"""Compiled: what a fragment does with a parcel."""

from __future__ import annotations

import numpy as np
from numba import njit

from towpath.lab.sim.dice import FATE, FIXED, SERVICE, drawn, mix, unit
from towpath.lab.sim.parcels import copy_parcel
from towpath.lab.sim.tables import NOBODY, Tables

_MEMBERS = np.uint64(4)  # numbers drawn for each tuple of a parcel, at most


@njit(cache=True, error_model="numpy")
def execute(t: Tables, n: int, p: int, operator: int, s: int) -> float:
    """Takes a parcel through the operators of one fragment; the work that it takes on a node of cpu 1."""
    parcel, cpu = t.parcels[p], t.nodes[n].cpu
    emits = parcel.version >= t.places[t.operators[operator].fragment, s].emits
    total = 0.0
    top = t.stack[0]
    top.operator, top.key, top.tuples, top.work = operator, parcel.key, parcel.tuples, parcel.work
    top.bytes, top.point = t.points[parcel.point].bytes, parcel.point
    depth = 1
    while depth > 0:
        depth -= 1
        top = t.stack[depth]
        o, tuples, path, size, source = top.operator, top.tuples, top.work, top.bytes, top.point
        op, count = t.operators[o], t.counts[o, s]
        key = mix(top.key, op.seed)
        cost = op.cost if op.join == NOBODY else _joined(t, op.join, s, source, parcel.born, tuples)
        out, work = _outcome(t, o, key, tuples, cost)
        count.taken += tuples
        count.given += out
        count.work += work
        if op.join == NOBODY:
            count.state = min(op.state_bytes, count.state + tuples * size)
        else:
            count.state = (t.sides[op.join, s, 0].tuples + t.sides[op.join, s, 1].tuples) * size
        t.clock[0].executed += tuples
        if op.shared == NOBODY or t.seen[op.shared, n] != key:
            total += work
            if op.shared != NOBODY:
                t.seen[op.shared, n] = key
        if out == 0:
            continue
        path += work / cpu
        point = len(t.streams) + o
        if emits and (op.query != NOBODY or t.points[point].first_reader < t.points[point].end_reader):
            _make(t, n, p, point, s, out, key, path)
        for c in range(op.end_child - 1, op.first_child - 1, -1):
            top = t.stack[depth]
            top.operator, top.key, top.tuples, top.work = t.children[c], key, out, path
            top.bytes, top.point = t.points[point].bytes, point
            depth += 1
    return total


@njit(cache=True)
def _joined(t: Tables, j: int, s: int, source: int, born: float, tuples: int) -> float:
    """Takes tuples of one side into the state, and drops what is now too old of the other; the work for each."""
    join = t.joins[j]
    here = 0 if source == join.left else 1
    own, other, kept = t.sides[j, s, here], t.sides[j, s, 1 - here], t.buckets[j, s, 1 - here]
    own.newest = max(own.newest, born)
    oldest = int(max(own.newest - join.window, 0.0) / join.bucket)
    while other.dropped < oldest:
        other.tuples -= kept[other.dropped]
        kept[other.dropped] = 0
        other.dropped += 1
    work = join.work + join.pair * other.tuples + join.purge * (own.tuples + other.tuples)  # eq. 3.3, for one tuple
    bucket = int(born / join.bucket)
    if bucket >= own.dropped:
        t.buckets[j, s, here, bucket] += tuples
        own.tuples += tuples
    return work


@njit(cache=True)
def _outcome(t: Tables, o: int, key: np.uint64, tuples: int, cost: float) -> tuple[int, float]:
    """How many tuples an operator emits, and the work of it. A number of its own is drawn for each tuple."""
    op = t.operators[o]
    out = op.whole * tuples
    if op.part > 0.0:
        for i in range(tuples):
            if unit(mix(key, FATE + _MEMBERS * np.uint64(i))) < op.part:
                out += 1
    if op.service == FIXED:
        return out, cost * tuples
    work = 0.0
    for i in range(tuples):
        work += cost * drawn(op.service, mix(key, SERVICE + _MEMBERS * np.uint64(i)))
    return out, work


@njit(cache=True)
def _make(t: Tables, n: int, p: int, point: int, s: int, tuples: int, key: np.uint64, work: float) -> None:
    """Something for others, to leave when the fragment is done."""
    q = copy_parcel(t, p)
    made, node = t.parcels[q], t.nodes[n]
    made.point, made.place, made.tuples, made.key, made.work = point, s, tuples, key, work
    if node.made_first == NOBODY:
        node.made_first = q
    else:
        t.parcels[node.made_last].next = q
    node.made_last = q
