"""Where requests wait for the loop that runs the job: it alone touches the engine."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from towpath.errors import ServiceError

T = TypeVar("T")

STOPPING = "the service is stopping; what was asked was not done"


class RequestQueue:
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
        """Called by the loop between two polls. Whatever a verb raises is the answer to its client."""
        while self._waiting:
            future, verb = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(verb())
            except Exception as error:
                future.set_exception(error)
            except BaseException:  # Ctrl-C
                future.set_exception(ServiceError(STOPPING))
                raise

    def close(self) -> None:
        """Whoever still waits gets an answer that says so."""
        with self._lock:
            self._open = False
            left = list(self._waiting)
            self._waiting.clear()
        for future, _ in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(ServiceError(STOPPING))
