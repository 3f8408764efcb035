from __future__ import annotations

import pytest

from towpath.policies.zhou.decision import Asked, Round, all_overloaded, load_request


@pytest.mark.parametrize(
    ("own", "partners", "expected"),
    [
        (0.2, {"a": 0.6, "b": 0.8}, ("b", 0.3)),  # the average is 0.533
        (0.5, {"a": 0.6, "b": 0.6}, None),  # 1.2 x 0.5 is not below 0.567
        (0.9, {"a": 0.1}, None),  # who has much does not ask
        (0.0, {"a": 0.5}, ("a", 0.25)),
        (0.0, {"b": 0.5, "a": 0.5}, ("b", 0.25)),
        (0.0, {"a": 0.0}, None),
        (0.1, {}, None),
    ],
)
def test_algorithm_2(own: float, partners: dict[str, float], expected: tuple[str, float] | None) -> None:
    found = load_request(own, partners, 1.2)
    assert found == (None if expected is None else (expected[0], pytest.approx(expected[1])))


def test_overloaded_with_all_partners() -> None:
    assert all_overloaded(0.95, {"a": 0.9}, 1.25)
    assert all_overloaded(0.8, {}, 1.25)
    assert not all_overloaded(0.95, {"a": 0.79, "b": 1.0}, 1.25)
    assert not all_overloaded(0.5, {"a": 1.0}, 1.25)
    assert all_overloaded(0.5, {"a": 1.0}, 2.0)


def test_a_round_gives_half_at_most() -> None:
    now = Round()
    now.begin(0.8)
    assert now.left == 0.4
    now.exported = 0.5
    assert now.left == 0
    now.begin(0.3)
    assert now.left == 0.15


def test_requests_wait_the_largest_first_and_the_newest_of_a_node_counts() -> None:
    now = Round()
    for request in (Asked("a", 0.1, 1.0), Asked("b", 0.3, 1.1), Asked("c", 0.3, 1.2), Asked("a", 0.2, 1.3)):
        now.ask(request)
    assert [(r.node, r.amount) for r in now.waiting()] == [("b", 0.3), ("c", 0.3), ("a", 0.2)]
    assert now.expire(1.2) == [Asked("b", 0.3, 1.1)]
    assert [r.node for r in now.waiting()] == ["c", "a"]
