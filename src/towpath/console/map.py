"""The map: which fragments are inside the carriers of each node. The busiest are drawn, the others counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from towpath.console.listing import Listed

MOST_DRAWN = 40  # fragments of a carrier
MOST_NAMES = 3  # queries of a fragment


@dataclass(frozen=True)
class FragmentLook:
    number: int
    queries: list[str]  # some of those that it answers
    users: int  # how many they are
    rate: float  # rows that these queries put out per second, about


@dataclass(frozen=True)
class CarrierFragments:
    carrier: str
    count: int
    drawn: list[FragmentLook]  # the busiest, then by number


@dataclass
class _Fragment:
    queries: list[str]
    users: int = 0
    rate: float = 0.0


def fragments(queries: Iterable[Listed]) -> list[CarrierFragments]:
    found: dict[str, dict[int, _Fragment]] = {}
    for query in queries:
        for number, seat in zip(query.fragments, query.seats, strict=True):
            fragment = found.setdefault(seat, {}).setdefault(number, _Fragment([]))
            fragment.users += 1
            fragment.rate = max(fragment.rate, query.rate or 0.0)
            if len(fragment.queries) < MOST_NAMES:
                fragment.queries.append(query.name)
    return [
        CarrierFragments(carrier, len(inside), _drawn(inside))
        for carrier, inside in sorted(found.items(), key=lambda item: (len(item[0]), item[0]))
    ]


def _drawn(inside: dict[int, _Fragment]) -> list[FragmentLook]:
    busiest = sorted(inside, key=lambda number: (-inside[number].rate, number))[:MOST_DRAWN]
    return [FragmentLook(n, inside[n].queries, inside[n].users, inside[n].rate) for n in sorted(busiest)]
