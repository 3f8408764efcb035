"""Finds the fragments that make a carrier fail, by trying tables that have some of them. Pure.

A try repeats the micro-batch that fails on a copy of the carrier's state, and nothing it does counts. So no micro-batch
that counts is ever done without a fragment that is innocent.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Tried:
    """How a try went; `blamed` is the fragment that a failure names, if it names one."""

    passed: bool
    blamed: int | None = None


Tries = Generator[tuple[int, ...], Tried, "Verdict"]  # yields fragments to try, is sent how that went


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
    """Of n fragments with one at fault, about log2(n) + 4 tries; each further one costs log2(n) + 1 more.

    Those that failures name take three tries together, and one more each.
    """
    tried = yield tuple(fragments)
    if tried.passed:
        return Verdict(Cause.GONE)
    left, guilty, innocent_plan = list(fragments), list[int](), False
    while not tried.passed:
        culprit = tried.blamed if tried.blamed in left else None
        if culprit is None:
            if not left or not (innocent_plan or (yield ()).passed):
                return Verdict(Cause.CARRIER)  # if an empty table has passed before, the machine is at fault
            innocent_plan = True
            culprit = yield from _narrowed_down(left)
        left.remove(culprit)
        guilty.append(culprit)
        tried = yield tuple(left)
    # A machine that fails now and then could have accused anybody.
    if (yield tuple(fragments)).passed:
        return Verdict(Cause.GONE)
    return Verdict(Cause.FRAGMENTS, tuple(sorted(guilty)))


def _narrowed_down(fragments: Sequence[int]) -> Generator[tuple[int, ...], Tried, int]:
    """The last of the shortest beginning that fails; an empty table passes, and all of them fail."""
    passes, fails = 0, len(fragments)  # so many of the first
    while fails - passes > 1:
        middle = (passes + fails) // 2
        if (yield tuple(fragments[:middle])).passed:
            passes = middle
        else:
            fails = middle
    return fragments[fails - 1]
