"""Finds the fragments that make a carrier fail, by trying tables that have some of them. Pure.

A try repeats the micro-batch that fails on a copy of the carrier's state, and nothing it does counts. So no micro-batch
that counts is ever done without a fragment that is innocent.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum

Tries = Generator[tuple[int, ...], bool, "Verdict"]  # yields fragments to try, is sent whether that passed


class Cause(StrEnum):
    FRAGMENTS = "fragments"
    CARRIER = "carrier"  # it fails without any of them too: its plan, its streams, or the machine
    GONE = "gone"  # it passes now
    DIVIDED = "divided"  # others have its fragments


@dataclass(frozen=True)
class Verdict:
    cause: Cause
    guilty: tuple[int, ...] = ()


def search(fragments: Sequence[int]) -> Tries:
    """Of n fragments with one at fault, about log2(n) + 4 tries; each further one costs log2(n) + 1 more."""
    if (yield tuple(fragments)):
        return Verdict(Cause.GONE)
    if not fragments or not (yield ()):
        return Verdict(Cause.CARRIER)
    left, guilty = list(fragments), list[int]()
    while True:
        passes, fails = 0, len(left)  # so many of the first
        while fails - passes > 1:
            middle = (passes + fails) // 2
            if (yield tuple(left[:middle])):
                passes = middle
            else:
                fails = middle
        guilty.append(left.pop(fails - 1))
        if (yield tuple(left)):
            break
        if not left:
            return Verdict(Cause.CARRIER)  # an empty table passed before: the machine is at fault
    # A machine that fails now and then could have accused anybody.
    if (yield tuple(fragments)):
        return Verdict(Cause.GONE)
    return Verdict(Cause.FRAGMENTS, tuple(sorted(guilty)))
