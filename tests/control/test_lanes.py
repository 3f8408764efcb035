"""Work in lanes: each piece once at a time, and none held up by another lane."""

from __future__ import annotations

import threading

from towpath.control.act.lanes import WIDTH, Lanes


def test_work_that_is_under_way_is_not_begun_again() -> None:
    lanes, go, done = Lanes(), threading.Event(), list[int]()

    def work(number: int) -> None:
        assert go.wait(60)
        done.append(number)

    for number in (1, 1, 2, 1):
        lanes.put("a", number, lambda number=number: work(number))
    go.set()
    assert lanes.wait() == []
    lanes.put("a", 1, lambda: work(1))
    lanes.wait()
    lanes.close()
    assert sorted(done) == [1, 1, 2]


def test_a_lane_that_is_held_up_holds_up_no_other() -> None:
    lanes, go, done = Lanes(), threading.Event(), list[str]()
    for number in range(WIDTH + 1):
        lanes.put("stuck", number, lambda: done.append("stuck" if go.wait(60) else "given up"))
    passed = threading.Event()
    lanes.put("free", 99, passed.set)
    assert passed.wait(60) and not done
    go.set()
    lanes.wait()
    lanes.close()
    assert done == ["stuck"] * (WIDTH + 1)
