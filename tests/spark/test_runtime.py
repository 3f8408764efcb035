"""What can be said about a node's runtime without Spark."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from towpath.spark.failures import BUSY, BUSY_S, PAUSES_S, StoppedByOthers, headline, is_outside, pause_after, reason
from towpath.spark.runtime import SparkRuntime
from towpath.store.layout import Store

OFTEN = len(PAUSES_S) + 1


@pytest.mark.parametrize(
    ("times", "error", "pause"),
    [
        pytest.param(1, "No space left on device", PAUSES_S[0], id="the first time"),
        pytest.param(OFTEN - 1, "No space left on device", PAUSES_S[-1], id="the last time"),
        pytest.param(OFTEN, "No space left on device", None, id="too often"),
        pytest.param(OFTEN, f"{BUSY}.", BUSY_S, id="a busy node is waited for"),
    ],
)
def test_pauses_grow_until_a_carrier_is_given_up(times: int, error: str, pause: float | None) -> None:
    assert pause_after(times, RuntimeError(error)) == pause


@pytest.mark.parametrize(
    ("error", "outside"),
    [
        (RuntimeError("Caused by: java.io.IOException: No space left on device"), True),
        (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), True),
        (OSError("gone"), True),
        (StoppedByOthers(), True),
        (RuntimeError("[INVALID_FORMAT.ESC_IN_THE_MIDDLE] the escape character"), False),
    ],
)
def test_what_no_query_is_to_blame_for(error: Exception, outside: bool) -> None:
    assert is_outside(error) is outside


IN_A_WORKER = """(STREAM_FAILED) [session: 1] Found error inside foreachBatch: Traceback (most recent call last):
  File "worker.py", line 1, in write
pyspark.errors.exceptions.connect.SparkException: Job aborted.

JVM stacktrace:
org.apache.spark.SparkException: Job aborted.
	at org.apache.spark.sql.Writer.write(Writer.scala:1)
Caused by: java.io.IOException: No space left on device
	at java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""
OUR_OWN = """[PYTHON_EXCEPTION] Found error in a worker: Traceback (most recent call last):
  File "feed.py", line 1, in advance
towpath.errors.StoreError: s/1.csv: not a number in line 3
"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        pytest.param("[PATH_NOT_FOUND] no such path\n\tat org.apache", "[PATH_NOT_FOUND] no such path", id="Spark's"),
        pytest.param(IN_A_WORKER, "IOException: No space left on device", id="the cause in a stack trace"),
        pytest.param(OUR_OWN, "s/1.csv: not a number in line 3", id="our own"),
        pytest.param("it died: Traceback (most recent call last):\n  File 1", "it died", id="no cause to be found"),
    ],
)
def test_a_failure_in_a_line(error: str, line: str) -> None:
    assert headline(RuntimeError(error)) == line


class Session:
    """Counts how often it is asked for its streaming queries."""

    def __init__(self) -> None:
        self.asked = 0
        self.dataSource = SimpleNamespace(register=lambda source: None)

    @property
    def streams(self) -> Any:
        self.asked += 1
        return SimpleNamespace(active=[])


class RemoteSession(Session):
    __module__ = "pyspark.sql.connect.session"


def opened(session: Session, store: Path) -> SparkRuntime:
    runtime = SparkRuntime(cast(SparkSession, session), Store(store), (), trigger_ms=2000, anchor_us=0)
    session.asked = 0  # what runs already is asked for when it is opened
    return runtime


def test_an_endpoint_is_asked_for_news_every_quarter_of_a_trigger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("towpath.spark.runtime.time.monotonic", lambda: now[0])
    session = RemoteSession()
    runtime = opened(session, tmp_path)
    for now[0] in (100.0, 100.2, 100.4, 100.6, 100.8):
        runtime.events()
    assert session.asked == 2


def test_who_waited_for_an_endpoint_or_closed_it_hears_of_it_at_once(tmp_path: Path) -> None:
    session = RemoteSession()
    runtime = opened(session, tmp_path)
    runtime.events()
    runtime.settle([])
    runtime.events()
    runtime.close()
    runtime.events()
    assert session.asked == 3


def test_the_spark_of_this_process_is_asked_every_time(tmp_path: Path) -> None:
    session = Session()
    runtime = opened(session, tmp_path)
    runtime.events()
    runtime.events()
    assert session.asked == 2


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ('<_InactiveRpcError of RPC:\n\tstatus = X\n\tdetails = "Deadline Exceeded"\n>: RPC', "Deadline Exceeded"),
        ("[Errno 111] Connection refused\nand more", "[Errno 111] Connection refused"),
    ],
)
def test_why_an_endpoint_does_not_answer_is_a_line(error: str, line: str) -> None:
    assert reason(RuntimeError(error)) == line


def test_a_carrier_that_is_just_being_started_again_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = opened(Session(), tmp_path)
    begun, go_on, asked = threading.Event(), threading.Event(), MagicMock(isActive=True, lastProgress=None)

    def launch(self: SparkRuntime, carrier: str, *_: object) -> None:
        begun.set()
        go_on.wait(10)
        self._queries[carrier] = asked

    monkeypatch.setattr(SparkRuntime, "_launch", launch)
    runtime._started["c0"], runtime._again_at["c0"] = (MagicMock(), 0), 0.0
    starting, settling = (threading.Thread(target=t) for t in (runtime.events, lambda: runtime.settle(["c0"])))
    starting.start()
    assert begun.wait(10)
    settling.start()
    settling.join(0.3)
    assert settling.is_alive()
    go_on.set()
    settling.join(10)
    starting.join(10)
    assert asked.processAllAvailable.call_count == 2
