from __future__ import annotations

from towpath.control.decide.limits import Limits, Restraint


def test_a_fragment_rests_after_a_move() -> None:
    restraint = Restraint(Limits(rest_s=60))
    restraint.begin(0, "a", "b")
    restraint.end(10, "f1", "a", "b")
    refusal = restraint.refusal(20, "f1", "b", "a")
    assert refusal == "it has moved already and rests for another 50 s (control.limits.rest)"
    assert restraint.refusal(20, "f2", "b", "a") is None
    assert restraint.refusal(70, "f1", "b", "a") is None


def test_a_node_has_so_many_moves_at_a_time() -> None:
    restraint = Restraint(Limits(per_node=2))
    restraint.begin(0, "a", "b")
    restraint.begin(0, "c", "a")
    assert restraint.refusal(1, "f", "b", "c") is None
    assert restraint.refusal(1, "f", "a", "c") == "2 moves of a are under way (control.limits.per_node)"
    restraint.end(2, "other", "a", "b")
    assert restraint.refusal(3, "f", "a", "c") is None


def test_a_minute_has_so_many_moves() -> None:
    restraint = Restraint(Limits(per_minute=2, per_node=100))
    for at in (0.0, 30.0):
        restraint.begin(at, "a", "b")
    assert restraint.refusal(59, "f", "a", "b") == "2 moves began within a minute (control.limits.per_minute)"
    assert restraint.refusal(60, "f", "a", "b") is None
