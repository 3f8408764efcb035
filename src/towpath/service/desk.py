"""Where requests wait for the loop that runs the job: it alone touches the engine."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from towpath.errors import RuntimeFailure, ServiceError, StoreError, StreamError, TowpathError

T = TypeVar("T")

STOPPING = "the service is stopping; what was asked was not done"


class Desk:
    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._lock = threading.Lock()
        self._open = True

    def put(self, verb: Callable[[], T]) -> Future[T]:
        """Called by any thread. The future can be cancelled as long as the verb has not begun."""
        future: Future[T] = Future()
        with self._lock:
            if not self._open:
                raise ServiceError(STOPPING)
            self._waiting.append((future, verb))
        return future

    def serve(self) -> None:
        """Called by the loop between two polls. Raises what the job cannot go on after; refusals are only answered."""
        while self._waiting:
            future, verb = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(verb())
            except Exception as error:
                future.set_exception(error)
                if not _is_refusal(error):
                    raise

    def close(self) -> None:
        """Whoever still waits is told so."""
        with self._lock:
            self._open = False
            left = list(self._waiting)
            self._waiting.clear()
        for future, _ in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(ServiceError(STOPPING))


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, TowpathError) and not isinstance(error, RuntimeFailure | StoreError | StreamError)
