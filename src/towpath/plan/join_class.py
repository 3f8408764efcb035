"""Join classes: what the joins of a universal carrier differ in, as data.

A class is the columns that tie both inputs, and a magnitude of windows. Tuples are kept and meet by class, by key, and
by *span*: event time is cut into spans as long as the magnitude. A tuple is kept in its own span, and in the next one
too if its window reaches into it; a pair meets in the span of its later tuple. So how long a tuple is kept is a matter
of its class, and the plan of a carrier need not know of any window.

Streams are not part of it, or a tuple would be kept for each pair of them. It is kept with the number of its stream and
with those of the streams whose tuples some fragment pairs it with, 64 of which fit into a BIGINT: its *partners*. So
few pairs are made that no fragment wants, and those go when pairs meet the fragments.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from towpath.plan.operators import ColumnRef
from towpath.plan.pipeline import Pipeline
from towpath.schema import Type

# Join windows are grouped by a factor of four, so that a long window does not make short ones keep its tuples.
SHORTEST_REACH_US, REACH_FACTOR = 5_000_000, 4

# What a tuple is looked up by, in one hash. Equalities beyond those columns are compared when a pair has met.
_KEYS = {Type.BIGINT: ("k_l", 3), Type.DOUBLE: ("k_d", 1), Type.STRING: ("k_s", 2)}
KEYS = {f"{prefix}{n}": t for t, (prefix, count) in _KEYS.items() for n in range(count)}
CLASS = "_class"
PARTNERS = 64
STREAMS_KEPT = 4_096
KEPT: Mapping[str, Type] = {
    CLASS: Type.BIGINT,
    "_from": Type.BIGINT,
    "_until": Type.BIGINT,
    "_keep": Type.BIGINT,
    "_of": Type.BIGINT,
    "_partners": Type.BIGINT,
} | KEYS
"""What a tuple is kept with: its class, start and end of the span, how long some fragment wants it, the number of its
stream, a bit for each that it is paired with, and its key."""

Key = tuple[ColumnRef, ColumnRef]


@dataclass(frozen=True)
class JoinClass:
    keys: tuple[Key, ...]
    span_us: int

    @property
    def number(self) -> int:
        """The same in every version of a table, and after every restart: tuples are kept under it."""
        return _number(repr((self.keys, self.span_us)))


def join_class(pipeline: Pipeline) -> JoinClass:
    """The class of a pipeline of two sources."""
    return JoinClass(tuple(sorted(pipeline.keys)), reach(max(s.range_us for s in pipeline.sources)))


@lru_cache(STREAMS_KEPT)
def stream_number(stream: str) -> int:
    return _number(stream)


def partner_bit(stream: str) -> int:
    """As a BIGINT: the last one is its sign."""
    bit = 1 << stream_number(stream) % PARTNERS
    return bit if bit < 1 << (PARTNERS - 1) else -bit


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def reach(range_us: int) -> int:
    """The magnitude of a join window: the shortest length of its kind that is not shorter."""
    steps = max(0, math.ceil(math.log(max(range_us, 1) / SHORTEST_REACH_US, REACH_FACTOR) - 1e-9))
    return SHORTEST_REACH_US * REACH_FACTOR**steps


def key_columns(keys: Iterable[Key], types: Mapping[ColumnRef, Type]) -> Iterator[tuple[str, Key, Type]]:
    """The columns that tuples are looked up by, which equality each stands for, and the type it is compared in.

    Only of like types: those have one form in which equal values are the same.
    """
    free = {t: iter([f"{prefix}{n}" for n in range(count)]) for t, (prefix, count) in _KEYS.items()}
    for key in sorted(keys):
        left, right = (types[column] for column in key)
        if left is right or (left.integral and right.integral):
            carried = left if left in free else Type.BIGINT
            if (name := next(free[carried], None)) is not None:
                yield name, key, carried
