from __future__ import annotations

import pytest

from towpath.policies.zhou.selection import ORDERS, Candidate, category, select

NEIGHBOURS = {1: ["r"], 2: ["s", "r"], 3: ["x"], 4: ["s", "x"]}
NATIVE = {1: "r", 2: "x", 3: "s"}


def candidate(
    name: str, native: str | None = "x", near: tuple[str, ...] = (), load: float = 0.1, size: float = 0
) -> Candidate:
    return Candidate(name, load, size, native, frozenset(near))


@pytest.mark.parametrize("outer", [1, 2, 3])
@pytest.mark.parametrize("inner", [1, 2, 3, 4])
def test_the_twelve_categories(outer: int, inner: int) -> None:
    assert category(candidate("f", NATIVE[outer], tuple(NEIGHBOURS[inner])), "s", "r") == (outer, inner)


def test_a_fragment_without_a_stream_is_foreign_everywhere() -> None:
    assert category(candidate("f", None), "s", "r") == (2, 3)


def test_a_fragment_without_neighbours_has_them_at_neither_node() -> None:
    assert category(candidate("f", "x", ()), "s", "r") == (2, 3)


def test_categories_in_order_then_density() -> None:
    all_of_them = [
        candidate(f"{outer}{inner}{which}", NATIVE[outer], tuple(NEIGHBOURS[inner]), size=size)
        for outer in (3, 1, 2)
        for inner in (4, 2, 3, 1)
        for which, size in (("b", 200.0), ("a", 100.0))
    ]
    chosen = select(all_of_them, "s", "r", 100.0, 100.0, ORDERS["data_flow_aware"])
    assert [c.fragment for c in chosen] == [f"{o}{i}{w}" for o in (1, 2, 3) for i in (1, 2, 3, 4) for w in "ab"]


THREE = [
    candidate("native and dense", "s", load=0.3, size=100),
    candidate("foreign", "x", load=0.2, size=100),
    candidate("goes home", "r", load=0.1, size=100),
]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("elementary", ["native and dense", "foreign", "goes home"]),
        ("intermediate", ["foreign", "goes home", "native and dense"]),
        ("data_flow_aware", ["goes home", "foreign", "native and dense"]),
    ],
)
def test_the_three_orders(order: str, expected: list[str]) -> None:
    assert [c.fragment for c in select(THREE, "s", "r", 1.0, 1.0, ORDERS[order])] == expected


def test_load_density() -> None:
    assert candidate("f", load=0.2, size=100).density == 0.002
    assert candidate("f", load=0.2, size=0).density == 0.2


@pytest.mark.parametrize(
    ("amount", "limit", "expected"),
    [
        (0.25, 1.0, 1),  # the first is larger than the request, and satisfies it
        (0.35, 1.0, 2),
        (0.6, 0.55, 2),
        (0.6, 0.45, 1),  # "goes home" would still fit, but "foreign" comes before it
        (0.1, 0.25, 0),  # so would the other two, but the first comes before them
        (0.0, 1.0, 0),
    ],
)
def test_in_order_until_the_request_is_satisfied_or_the_limit_is_reached(
    amount: float, limit: float, expected: int
) -> None:
    chosen = select(THREE, "s", "r", amount, limit, ORDERS["elementary"])
    assert [c.fragment for c in chosen] == ["native and dense", "foreign", "goes home"][:expected]


def test_a_fragment_that_was_not_measured_yet_stays() -> None:
    assert select([candidate("f", load=0.0)], "s", "r", 1.0, 1.0, ORDERS["elementary"]) == []
