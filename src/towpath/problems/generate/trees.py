"""Plans as trees of joins with chains of single-stream operators between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class ChainSegment:
    """A stream or a join, and the chain of single-stream operators above it."""

    below: tuple[ChainSegment, ...] = ()
    singles: int = 0

    def depth(self) -> int:
        return self.singles + (1 + max(s.depth() for s in self.below) if self.below else 0)

    def segments(self) -> list[ChainSegment]:
        """Those below first."""
        return [s for below in self.below for s in below.segments()] + [self]

    def longest(self) -> list[ChainSegment]:
        deepest = max(self.below, key=lambda s: len(s.longest()), default=None)
        return [*deepest.longest(), self] if deepest else [self]


def join_tree(operators: int, streams: int, depth: int, joins: str, singles_at: str = "everywhere") -> ChainSegment:
    """A tree with exactly that many operators, streams and operators on the longest path; ValueError if none has.

    Single-stream operators are `everywhere`, or only at the `streams`, before the first join.
    """
    leaves = [ChainSegment() for _ in range(streams)]
    root = _balanced(leaves) if joins == "balanced" else _left_deep(leaves)
    singles = operators - (streams - 1)
    if singles < 0:
        raise ValueError(f"{streams} streams need {streams - 1} joins, but there are {operators} operators")
    path = root.longest()
    places = [s for s in root.segments() if singles_at == "everywhere" or not s.below]
    lacking = depth - root.depth()
    if not 0 <= lacking <= singles:
        raise ValueError(f"its depth is at least {root.depth()} and at most {root.depth() + singles}, not {depth}")
    on_path = [s for s in path if s in places]
    for n in range(lacking):
        on_path[n % len(on_path)].singles += 1
    for _ in range(singles - lacking):
        _lengthen(root, [s for s in places if s not in path], depth)
    return root


def _lengthen(root: ChainSegment, places: list[ChainSegment], depth: int) -> None:
    """One more operator in the shortest chain where it does not make the tree deeper; streams before joins."""
    for place in sorted(places, key=lambda s: (s.singles, bool(s.below))):
        place.singles += 1
        if root.depth() <= depth:
            return
        place.singles -= 1
    raise ValueError(f"so many operators do not fit into a depth of {depth}")


def _balanced(parts: list[ChainSegment]) -> ChainSegment:
    if len(parts) == 1:
        return parts[0]
    pairs = [ChainSegment((left, right)) for left, right in zip(parts[::2], parts[1::2], strict=False)]
    return _balanced(pairs + parts[len(pairs) * 2 :])


def _left_deep(parts: list[ChainSegment]) -> ChainSegment:
    root = parts[0]
    for part in parts[1:]:
        root = ChainSegment((root, part))
    return root
