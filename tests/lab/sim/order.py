"""Run without compilation: which tuples each operator took in, in which order, at a low and at a high load."""

from __future__ import annotations

import sys
from collections import defaultdict
from itertools import pairwise
from typing import Any

from lab.sim.cases import BACK_AND_FORTH, pair, scripted, spread
from towpath.lab.sim import loop, simulate

taken: dict[tuple[int, int, int], list[float]] = defaultdict(list)
execute = loop.execute


def watched(t: Any, n: int, p: int, operator: int, s: int) -> float:
    parcel = t.parcels[p]
    emits = parcel.version >= t.places[t.operators[operator].fragment, s].emits
    if emits:
        taken[operator, int(parcel.point), int(parcel.stream)].append(float(parcel.born))
    return execute(t, n, p, operator, s)


loop.execute = watched
for rate in (1.0, 2.0):
    taken.clear()
    outcome = simulate(pair(rate), spread(), 4.0, actors=scripted(BACK_AND_FORTH), move=sys.argv[1])
    print("moves", len(outcome.moves), "failed", (outcome.moves["failed"] != "").sum())
    print("doubled", sum(len(born) - len(set(born)) for born in taken.values()))
    print("out of order", sum(a > b for born in taken.values() for a, b in pairwise(born)))
