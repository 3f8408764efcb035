"""The query plan manager: whether a distribution may be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

Row = tuple[str, str]  # a fragment and its processor: a line of the distribution table


def faults(rows: Sequence[Row], fragments: Iterable[str], alive: Collection[str]) -> list[str]:
    """Every fragment must be there exactly once, on a processor that is alive; all that is wrong, in words."""
    count = Counter(fragment for fragment, _ in rows)
    wanted = dict.fromkeys(fragments)
    found = [f"{fragment} is nowhere" for fragment in wanted if not count[fragment]]
    found += [f"{fragment} is there {n} times" for fragment, n in count.items() if n > 1]
    found += [f"{fragment} is not in any plan" for fragment in count if fragment not in wanted]
    found += [f"{processor} of {fragment} is not alive" for fragment, processor in rows if processor not in alive]
    return found
