"""A node behind a thread: it may hang, die and come back, and whoever asks never waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest
from tests.control.world import SQL, batch_done, planned_of

from towpath.errors import RuntimeFailure, StoreError
from towpath.plan.assignment import TableChange
from towpath.plan.templates import Template, template_of
from towpath.runtime.carriers import CarrierEvent, CarrierFailed
from towpath.runtime.fake import FakeNode
from towpath.runtime.remote_node import POLL_S, RemoteNode

LOST_AFTER_S, PATIENCE_S = 0.4, 10.0
TEMPLATE = template_of(planned_of(SQL["filter"]).pipelines[0])


class Node(FakeNode):
    """What is at the other end."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()
        self.answers.set()
        self.done: list[tuple[str, str]] = []
        self.forgotten = 0
        self.fails: Exception | None = None

    def _do(self, what: str, carrier: str = "") -> None:
        self.answers.wait()
        if self.fails is not None:
            raise self.fails
        self.done.append((what, carrier))

    def publish(self, carrier: str, template: Template, version: int, change: TableChange) -> None:
        self._do("publish", carrier)

    def start(self, carrier: str, template: Template, epoch: int, banned: Sequence[int] = ()) -> None:
        self._do("start", carrier)

    def stop(self, carrier: str) -> None:
        self._do("stop", carrier)

    def tick(self, carrier: str, input: int, event_us: int) -> None:
        self._do("tick", carrier)

    def finish_input(self, *, close: bool) -> None:
        self._do("finish")

    def settle(self, carriers: Sequence[str]) -> bool:
        self._do("settle", ",".join(carriers))
        return True

    def events(self) -> list[CarrierEvent]:
        self.answers.wait()
        return super().events()

    def waiting(self, carrier: str) -> bool:
        return True

    def ping(self) -> None:
        self.answers.wait()

    def forget(self) -> None:
        self.forgotten += 1

    def close(self) -> None:
        self._do("close")


def watch(node: Node, listens: Callable[[], bool] = lambda: True) -> RemoteNode:
    watched = RemoteNode("n", lambda: node, listens, LOST_AFTER_S)
    watched.wait_open()
    return watched


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def test_it_gets_commands_in_order_and_its_news_come_back() -> None:
    node = Node()
    watched = watch(node)
    node.news = [batch_done("c0", 0, 1, [5])]
    watched.publish("c0", TEMPLATE, 1, TableChange([]))
    watched.start("c0", TEMPLATE, 0)
    assert watched.settle(["c0"])
    assert node.done == [("publish", "c0"), ("start", "c0"), ("settle", "c0")]
    found: list[CarrierEvent] = []
    until(lambda: bool(found.extend(watched.events()) or found))
    assert found == [batch_done("c0", 0, 1, [5])]
    assert watched.events() == []
    watched.close()
    assert node.done[-1] == ("close", "")


def test_whether_a_carrier_waits_is_known_a_moment_after_somebody_asked() -> None:
    watched = watch(Node())
    assert not watched.waiting("c0")
    until(lambda: watched.waiting("c0"))
    watched.close()


def test_a_node_that_hangs_is_lost_and_nobody_waits_for_it() -> None:
    node = Node()
    watched = watch(node)
    node.answers.clear()
    watched.start("c0", TEMPLATE, 0)
    until(lambda: watched.lost is not None)
    assert "it has not answered for" in str(watched.lost)
    assert not watched.settle(["c0"])
    with pytest.raises(RuntimeFailure):
        watched.ping()
    node.answers.set()
    until(lambda: watched.lost is None)
    watched.close()


def test_a_node_that_was_given_up_stops_everything_before_it_is_back() -> None:
    node = Node()
    watched = watch(node)
    node.news = [batch_done("c0", 0, 1, [5])]
    node.answers.clear()
    watched.stop("c1")
    until(lambda: watched.lost is not None)
    watched.forget()
    node.answers.set()
    until(lambda: watched.lost is None)
    assert node.forgotten
    assert watched.events() == [], "what it did meanwhile is nobody's business"
    watched.close()


def test_a_node_whose_address_nobody_listens_at_is_lost_sooner() -> None:
    node, there = Node(), threading.Event()
    there.set()
    watched = RemoteNode("n", lambda: node, there.is_set, lost_after_s=60)
    watched.wait_open()
    node.answers.clear()
    there.clear()
    until(lambda: watched.lost is not None)
    assert "nobody listens" in str(watched.lost)
    node.answers.set()
    watched.close()


def test_a_node_that_cannot_be_opened_says_why_and_is_tried_again() -> None:
    node, attempts = Node(), [RuntimeFailure("no such host"), RuntimeFailure("no such host")]

    def open_node() -> Node:
        if attempts:
            raise attempts.pop()
        return node

    watched = RemoteNode("n", open_node, lambda: True, LOST_AFTER_S)
    with pytest.raises(RuntimeFailure, match="no such host"):
        watched.wait_open()
    until(lambda: watched.lost is None)
    watched.close()


def test_a_node_that_does_not_answer_at_all_is_reported_by_its_name() -> None:
    hangs = threading.Event()

    def open_node() -> Node:
        hangs.wait()
        return Node()

    watched = RemoteNode("n", open_node, lambda: True, lost_after_s=0.01)
    with pytest.raises(RuntimeFailure, match="node n: it has not answered within"):
        watched.wait_open()
    hangs.set()
    watched.close()


def test_what_fails_because_it_is_closed_is_reported_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    watched = watch(node)
    node.fails = RuntimeError("cannot schedule new futures after interpreter shutdown")
    watched.close()
    assert ("close", "") not in node.done
    assert caplog.text == ""


def test_a_carrier_that_cannot_be_started_is_reported_and_the_node_goes_on() -> None:
    node = Node()
    watched = watch(node)
    node.fails = StoreError("the job has no such stream")
    watched.start("c0", TEMPLATE, 0)
    found: list[CarrierEvent] = []
    until(lambda: bool(found.extend(watched.events()) or found))
    assert found == [CarrierFailed("c0", "the job has no such stream", outside=True)]
    assert watched.lost is None
    watched.close()


def test_an_error_of_the_connection_loses_the_node_until_it_was_given_up() -> None:
    node = Node()
    watched = watch(node)
    node.fails = ConnectionError("reset by peer")
    watched.stop("c0")
    until(lambda: watched.lost is not None)
    assert watched.lost == "ConnectionError: reset by peer"
    node.fails = None
    time.sleep(3 * POLL_S)
    assert watched.lost is not None, "nobody has given up what ran there"
    watched.forget()
    until(lambda: watched.lost is None)
    assert node.forgotten
    watched.close()
