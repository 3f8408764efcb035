from __future__ import annotations

import threading

import pytest

from towpath.errors import MoveRefused, RuntimeFailure, ServiceError, StoreError
from towpath.service.request_queue import RequestQueue


def fail(error: BaseException) -> None:
    raise error


def test_verbs_are_done_by_who_serves_in_their_order() -> None:
    desk, done = RequestQueue(), []
    futures = [desk.put(lambda n=n: done.append((n, threading.current_thread()))) for n in range(3)]  # type: ignore[misc]
    assert not any(future.done() for future in futures)
    desk.serve()
    assert done == [(n, threading.current_thread()) for n in range(3)]


def test_a_refusal_is_answered_and_the_job_goes_on() -> None:
    desk = RequestQueue()
    refused, next_one = desk.put(lambda: fail(MoveRefused("no"))), desk.put(lambda: 5)
    desk.serve()
    assert isinstance(refused.exception(0), MoveRefused) and next_one.result(0) == 5


@pytest.mark.parametrize("error", [RuntimeFailure("Spark is gone"), StoreError("full"), KeyError("a bug")])
def test_whatever_a_request_raises_is_its_answer_and_the_loop_goes_on(error: Exception) -> None:
    desk = RequestQueue()
    failed, next_one = desk.put(lambda: fail(error)), desk.put(lambda: 5)
    desk.serve()
    assert failed.exception(0) is error and next_one.result(0) == 5


def test_who_waits_hears_when_the_job_is_stopped_meanwhile() -> None:
    desk = RequestQueue()
    future = desk.put(lambda: fail(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        desk.serve()
    assert isinstance(future.exception(0), ServiceError)


def test_what_nobody_waits_for_any_more_is_not_done() -> None:
    desk, done = RequestQueue(), []
    assert desk.put(lambda: done.append(1)).cancel()
    desk.serve()
    assert not done


def test_closing_answers_all_who_wait() -> None:
    desk = RequestQueue()
    future = desk.put(lambda: 1)
    desk.close()
    with pytest.raises(ServiceError, match="is stopping"):
        future.result(0)
    with pytest.raises(ServiceError, match="is stopping"):
        desk.put(lambda: 1)
