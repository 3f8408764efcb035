"""Work that may take long, in lanes: what is held up in one of them holds up none of the others."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

WIDTH = 4  # threads of a lane, which mostly wait for a disk or a network


class Lanes:
    def __init__(self) -> None:
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._under_way: dict[int, Future[None]] = {}

    def put(self, lane: str, number: int, work: Callable[[], None]) -> None:
        """Has work done that has a number; not if work of the same number is under way."""
        if number not in self._under_way:
            if lane not in self._pools:
                self._pools[lane] = ThreadPoolExecutor(WIDTH, f"lane {lane}")
            self._under_way[number] = self._pools[lane].submit(work)

    def wait(self, patience_s: float | None = None) -> list[BaseException]:
        """Until everything is done, or for so long; returns what went wrong."""
        wait(self._under_way.values(), patience_s)
        done = {number: future for number, future in self._under_way.items() if future.done()}
        for number in done:
            del self._under_way[number]
        return [error for future in done.values() if (error := future.exception()) is not None]

    def close(self) -> None:
        """What has not begun is not begun any more; what is under way is waited for."""
        for pool in self._pools.values():
            pool.shutdown(wait=True, cancel_futures=True)
