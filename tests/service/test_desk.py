from __future__ import annotations

import threading

import pytest

from towpath.errors import MoveRefused, RuntimeFailure, ServiceError
from towpath.service.desk import Desk


def fail(error: Exception) -> None:
    raise error


def test_verbs_are_done_by_who_serves_in_their_order() -> None:
    desk, done = Desk(), []
    futures = [desk.put(lambda n=n: done.append((n, threading.current_thread()))) for n in range(3)]  # type: ignore[misc]
    assert not any(future.done() for future in futures)
    desk.serve()
    assert done == [(n, threading.current_thread()) for n in range(3)]


def test_a_refusal_is_answered_and_the_job_goes_on() -> None:
    desk = Desk()
    refused, next_one = desk.put(lambda: fail(MoveRefused("no"))), desk.put(lambda: 5)
    desk.serve()
    assert isinstance(refused.exception(0), MoveRefused) and next_one.result(0) == 5


@pytest.mark.parametrize("error", [RuntimeFailure("Spark is gone"), KeyError("a bug")])
def test_what_the_job_cannot_go_on_after_is_raised_too(error: Exception) -> None:
    desk = Desk()
    future = desk.put(lambda: fail(error))
    with pytest.raises(type(error)):
        desk.serve()
    assert future.exception(0) is error


def test_what_nobody_waits_for_any_more_is_not_done() -> None:
    desk, done = Desk(), []
    assert desk.put(lambda: done.append(1)).cancel()
    desk.serve()
    assert not done


def test_closing_answers_all_who_wait() -> None:
    desk = Desk()
    future = desk.put(lambda: 1)
    desk.close()
    with pytest.raises(ServiceError, match="is stopping"):
        future.result(0)
    with pytest.raises(ServiceError, match="is stopping"):
        desk.put(lambda: 1)
