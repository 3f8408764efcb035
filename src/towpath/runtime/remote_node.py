"""A node that may die, hang or be cut off: asked in threads of its own, so that nobody waits for it.

One thread opens the node, carries out its commands, in order, and asks for news; starting a carrier can take it a
while. The other asks for a sign of life. When there was none for some time the node counts as lost. Whoever then has
its carriers run elsewhere calls `forget`; the node is back once it answers again and has stopped what still runs there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from towpath.errors import RuntimeFailure, TowpathError
from towpath.plan.assignment import Row, TableChange
from towpath.plan.templates import Template
from towpath.runtime.carriers import CarrierEvent, CarrierFailed, Runtime

log = logging.getLogger(__name__)

REFUSED_AFTER_S = 1.5  # without an answer, when nobody listens at its address either
POLL_S = 0.2
PING_S = 0.5
AGAIN_S = 1.0  # between two attempts to open it
CLOSE_S = 30.0
REMEMBERED = 20  # round trips that nobody has asked about
CURIOUS_S = 10.0  # who has not asked for so long does not need to know any more

Command = Callable[[Runtime], None]


class RemoteNode:
    """A Runtime around another one that is reached over a network.

    `open` connects and may raise or hang; `listens` says quickly whether there is anybody at the node's address.
    """

    def __init__(
        self, name: str, open: Callable[[], Runtime], listens: Callable[[], bool], lost_after_s: float
    ) -> None:
        self._name = name
        self._open = open
        self._listens = listens
        self._lost_after_s = lost_after_s
        self._guard = threading.Lock()
        self._commands: deque[tuple[str, Command]] = deque()
        self._events: list[CarrierEvent] = []
        self._asked: dict[str, float] = {}  # carriers: when somebody last wanted to know whether they wait
        self._waiting: dict[str, bool] = {}
        self._inner: Runtime | None = None
        self._answered = time.monotonic()
        self._round_trips: deque[float] = deque(maxlen=REMEMBERED)
        self._trouble: str | None = "it has not answered yet"
        self._forgotten = False
        self._closing = threading.Event()
        self._first = threading.Event()  # the first attempt to open it is over
        self._thread = threading.Thread(target=self._run, name=f"node {name}", daemon=True)
        self._thread.start()

    def wait_open(self) -> None:
        """Until it answers for the first time. Raises RuntimeFailure if it does not."""
        patience_s = self._lost_after_s * 3
        if not self._first.wait(patience_s):
            raise RuntimeFailure(
                f"node {self._name}: it has not answered within {patience_s:g} s, three times its lost_after\n"
                "    -> see what keeps it busy or cut off; a slow machine needs a longer lost_after"
            )
        if (why := self._trouble) is not None:
            raise RuntimeFailure(why)

    # --- what the engine asks ----------------------------------------------------------------------------------------

    @property
    def inner(self) -> Runtime | None:
        """The node itself, while it answers."""
        return self._inner

    @property
    def lost(self) -> str | None:
        if self._forgotten:
            return "it has yet to stop what others run now"
        if self._trouble is not None:
            return self._trouble
        silent_s = time.monotonic() - self._answered
        if silent_s > self._lost_after_s:
            return f"it has not answered for {silent_s:.0f} s"
        if silent_s > REFUSED_AFTER_S and not self._listens():
            return f"it has not answered for {silent_s:.1f} s and nobody listens at its address"
        return None

    @property
    def slow(self) -> str | None:
        silent_s = time.monotonic() - self._answered
        if silent_s <= self._lost_after_s / 2 or self.lost is not None:
            return None
        return f"it has not answered for {silent_s:.1f} s; after {self._lost_after_s:g} s it counts as lost"

    def forget(self) -> None:
        with self._guard:
            self._forgotten = True
            self._commands.clear()
            self._events.clear()
            self._asked.clear()
            self._waiting.clear()

    def publish(self, carrier: str, template: Template, version: int, change: TableChange) -> None:
        self._enqueue(carrier, lambda node: node.publish(carrier, template, version, change))

    def start(self, carrier: str, template: Template, epoch: int, banned: Sequence[int] = ()) -> None:
        self._enqueue(carrier, lambda node: node.start(carrier, template, epoch, banned))

    def try_out(
        self, carrier: str, template: Template, epoch: int, rows: Sequence[Row], banned: Sequence[int] = ()
    ) -> None:
        self._enqueue(carrier, lambda node: node.try_out(carrier, template, epoch, rows, banned))

    def tick(self, carrier: str, input: int, event_us: int) -> None:
        self._enqueue(carrier, lambda node: node.tick(carrier, input, event_us))

    def ping(self) -> None:
        if (why := self.lost) is not None:
            raise RuntimeFailure(why)

    def round_trips(self) -> list[float]:
        with self._guard:
            found, self._round_trips = list(self._round_trips), deque(maxlen=REMEMBERED)
        return found

    def finish_input(self, *, close: bool) -> None:
        self._enqueue("", lambda node: node.finish_input(close=close))

    def stop(self, carrier: str) -> None:
        self._enqueue(carrier, lambda node: node.stop(carrier))

    def events(self) -> list[CarrierEvent]:
        with self._guard:
            found, self._events = self._events, []
        return found

    def waiting(self, carrier: str) -> bool:
        with self._guard:
            self._asked[carrier] = time.monotonic()
            return self._waiting.get(carrier, False)

    def settle(self, carriers: Sequence[str]) -> bool:
        opened, done = threading.Event(), threading.Event()
        failures: list[BaseException] = []

        def settle() -> None:
            try:
                if self._inner is not None:
                    self._inner.settle(carriers)
            except Exception as error:
                failures.append(error)
            done.set()

        self._enqueue("", lambda node: opened.set())
        if not self._unless_lost(opened):
            return False
        # Not in the node's own thread, which has to go on asking for a sign of life.
        threading.Thread(target=settle, name=f"settling {self._name}", daemon=True).start()
        settled = self._unless_lost(done)
        if settled and failures and self.lost is None:
            raise failures[0]
        # One that fails because the node is gone has settled nothing, and the node may be back a moment later.
        return settled and not failures

    heap_bytes = None

    def close(self) -> None:
        self._closing.set()
        if self.lost is None:
            self._thread.join(CLOSE_S)

    def _enqueue(self, carrier: str, command: Command) -> None:
        with self._guard:
            self._commands.append((carrier, command))
            self._waiting.pop(carrier, None)  # that it rested says nothing about what it does afterwards

    def _unless_lost(self, happened: threading.Event) -> bool:
        while not happened.wait(POLL_S):
            if self.lost is not None:
                return False
        return True

    # --- the node's thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._inner = self._open()
            except Exception as error:
                self._trouble = str(error) or type(error).__name__
                self._first.set()
                self._closing.wait(AGAIN_S)
                continue
            try:
                self._work(self._inner)
            except Exception as error:
                if self._closing.is_set():
                    break  # nobody needs it any more, and where a log would go is closed perhaps
                self._trouble = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                log.exception("node %s: %s", self._name, self._trouble)
                # A new connection knows nothing of what was started here, so somebody has to give it up first.
                while not self._forgotten and not self._closing.wait(POLL_S):
                    pass
            self._inner = None
        self._first.set()

    def _work(self, node: Runtime) -> None:
        """Until the node fails, is forgotten, or is not needed any more."""
        if self._forgotten:
            node.forget()
            with self._guard:
                self._forgotten = False
        self._heard()
        self._trouble = None
        self._first.set()
        threading.Thread(target=self._ping, args=(node,), name=f"asking {self._name}", daemon=True).start()
        while not self._closing.wait(POLL_S):
            self._run_commands(node)
            news = node.events()
            rests = {carrier: node.waiting(carrier) for carrier in self._wanted()}
            with self._guard:
                if self._forgotten:
                    break
                self._events += news
                commanded = {carrier for carrier, _ in self._commands}
                self._waiting = {carrier: rest for carrier, rest in rests.items() if carrier not in commanded}
        if self._forgotten:
            node.forget()
            return
        self._run_commands(node)
        node.close()
        with self._guard:
            self._events += node.events()

    def _wanted(self) -> list[str]:
        """Of which carriers somebody wants to know whether they wait: each answer costs the node a question."""
        with self._guard:
            since = time.monotonic() - CURIOUS_S
            self._asked = {carrier: at for carrier, at in self._asked.items() if at > since}
            return list(self._asked)

    def _run_commands(self, node: Runtime) -> None:
        while True:
            with self._guard:
                if self._forgotten or not self._commands:
                    return
                carrier, command = self._commands.popleft()
            try:
                command(node)
            except TowpathError as error:
                with self._guard:
                    if not self._forgotten:
                        self._events.append(CarrierFailed(carrier, str(error), outside=True))

    def _ping(self, node: Runtime) -> None:
        while self._inner is node:
            begun = time.monotonic()
            try:
                node.ping()
            except Exception as error:
                if self._closing.is_set():
                    break
                log.warning("node %s: %s", self._name, error)
            else:
                self._heard()
                with self._guard:
                    self._round_trips.append(time.monotonic() - begun)
            time.sleep(PING_S)

    def _heard(self) -> None:
        self._answered = time.monotonic()
