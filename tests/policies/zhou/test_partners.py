from __future__ import annotations

import numpy as np

from towpath.policies.zhou.messages import PartnerAnswer, PartnerEnd, PartnerRequest
from towpath.policies.zhou.partners import Partners

FACTORS = {"a": 1, "b": 3, "c": 2}
NODES = ["a", "b", "c", "x", "y"]


def partners(max1: int = 2, max2: int = 1, maximum_try: int = 2, factors: dict[str, int] = FACTORS) -> Partners:
    rng = np.random.default_rng(0)
    return Partners(factors, NODES, max1=max1, max2=max2, maximum_try=maximum_try, rng=rng)


def groups(p: Partners) -> tuple[list[str], list[str]]:
    return list(p.g1), list(p.g2)


def test_the_neighbours_of_the_highest_factor_are_asked_first_and_no_more_than_could_be_taken() -> None:
    p = partners()
    assert p.select() == [("b", PartnerRequest(1)), ("c", PartnerRequest(2))]
    assert p.select() == []


def test_an_answer_resumes_the_algorithm() -> None:
    p = partners()
    p.select()
    assert p.answered("b", PartnerAnswer(1, False), {}) == [("a", PartnerRequest(3))]
    assert p.answered("c", PartnerAnswer(2, True), {}) == []
    assert p.answered("a", PartnerAnswer(3, True), {}) == []
    assert groups(p) == (["c", "a"], [])


def test_after_the_neighbours_random_nodes_as_often_as_maximum_try() -> None:
    p = partners(max1=4, maximum_try=2)
    asked = [node for node, _ in p.select()]
    for serial, node in ((1, "b"), (2, "c"), (3, "a")):
        asked += [other for other, _ in p.answered(node, PartnerAnswer(serial, False), {})]
    assert asked[:3] == ["b", "c", "a"]
    assert sorted(asked[3:]) == ["x", "y"]


def test_a_partner_of_the_second_group_changes_over() -> None:
    p = partners()
    assert p.requested("c", PartnerRequest(7), least=0.0) == [("c", PartnerAnswer(7, True))]
    assert groups(p) == ([], ["c"])
    assert p.select() == [("b", PartnerRequest(1))]
    assert groups(p) == (["c"], [])


def test_the_second_group_is_bounded() -> None:
    p = partners(max2=1)
    p.requested("x", PartnerRequest(1), least=0.0)
    assert p.requested("y", PartnerRequest(1), least=0.0) == [("y", PartnerAnswer(1, False))]
    assert p.requested("x", PartnerRequest(2), least=0.0) == [("x", PartnerAnswer(2, True))]


def test_two_that_ask_each_other_are_in_the_first_group() -> None:
    p = partners(max2=0)
    p.select()
    assert p.requested("b", PartnerRequest(9), least=0.0) == [("b", PartnerAnswer(9, True))]
    assert groups(p) == (["b"], [])
    assert p.answered("b", PartnerAnswer(1, True), {}) == []
    assert groups(p) == (["b"], [])


def test_refresh_gives_up_strangers_only_and_asks_again() -> None:
    p = partners(max1=2, factors={"b": 1}, maximum_try=1)
    (_, (stranger, _)) = p.select()
    p.answered("b", PartnerAnswer(1, False), {})
    p.answered(stranger, PartnerAnswer(2, True), {})
    sent = p.refresh()
    assert sent[:2] == [(stranger, PartnerEnd()), ("b", PartnerRequest(3))]


def test_an_answer_that_comes_too_late_is_ignored() -> None:
    """b asked too, was accepted, and ended it; now its answer to the first request must not count for the second."""
    p = partners(max1=1, factors={"b": 1}, maximum_try=0)
    assert p.select() == [("b", PartnerRequest(1))]
    p.requested("b", PartnerRequest(5), least=0.0)
    p.ended("b")
    assert p.refresh() == [("b", PartnerRequest(2))]
    assert p.answered("b", PartnerAnswer(1, True), {}) == []
    assert groups(p) == ([], [])
    p.answered("b", PartnerAnswer(2, True), {})
    assert groups(p) == (["b"], [])


def test_an_end_frees_the_place() -> None:
    p = partners(max1=1)
    p.select()
    p.answered("b", PartnerAnswer(1, True), {})
    assert p.ended("b") == [("c", PartnerRequest(2))]
    assert groups(p) == ([], [])


def test_a_probed_node_takes_the_place_of_the_heaviest() -> None:
    p = partners(max1=2)
    p.select()
    p.answered("b", PartnerAnswer(1, True), {})
    p.answered("c", PartnerAnswer(2, True), {})
    ((found, request),) = p.probe(0.95)
    assert isinstance(request, PartnerRequest)
    assert request.probe == 0.95
    assert found in {"a", "x", "y"}
    assert p.answered(found, PartnerAnswer(request.serial, True), {"b": 0.9, "c": 0.95}) == [("c", PartnerEnd())]
    assert groups(p) == (["b", found], [])


def test_a_probe_is_refused_by_a_node_that_has_not_clearly_less_but_no_request_is() -> None:
    for least, accepted in ((0.95, False), (0.94, True)):
        answer = partners().requested("x", PartnerRequest(1, probe=0.95), least)
        assert answer == [("x", PartnerAnswer(1, accepted))]
    assert partners().requested("x", PartnerRequest(1), 2.0) == [("x", PartnerAnswer(1, True))]


def test_a_lost_node_is_neither_partner_nor_asked() -> None:
    p = partners(max1=1)
    p.select()
    assert p.lost("b") == [("c", PartnerRequest(2))]
    p.answered("c", PartnerAnswer(2, False), {})
    assert "b" not in [node for node, _ in p.refresh()]


def test_without_a_first_group_nobody_is_asked() -> None:
    p = partners(max1=0, max2=0)
    assert p.select() == p.refresh() == p.probe(0.95) == []
