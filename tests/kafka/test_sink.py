"""Results in a topic: each row once for readers of committed messages, whenever the writer dies."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from results.logs import Row, crash_at, part, write_batch
from towpath.errors import SinkError
from towpath.results import KafkaSink, SinkFeeder, Step
from towpath.results import kafka as sinks

from .broker import Broker
from .topics import consume

TABLE = pa.table({"k": [1, 2, 3], "x": [0.5, None, float("nan")]})
MESSAGES = [{"k": 1, "x": 0.5}, {"k": 2, "x": None}, {"k": 3, "x": "NaN"}]


@pytest.fixture
def topic() -> str:
    return f"results-{uuid.uuid4().hex[:8]}"


def keyed(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=str)


def test_rows_are_messages(broker: Broker, topic: str) -> None:
    KafkaSink(broker.address, topic, {"kafka.compression.type": "zstd"}).write(TABLE, Step(topic, "q-0"))
    assert keyed(consume(broker.address, topic)) == MESSAGES


def test_a_step_that_is_repeated_after_a_crash_is_not_written_again(broker: Broker, topic: str) -> None:
    for _ in range(2):
        KafkaSink(broker.address, topic, {}).write(TABLE, Step(topic, "q-0"))
    KafkaSink(broker.address, topic, {}).write(TABLE.slice(0, 1), Step(topic, "q-1"))
    assert keyed(consume(broker.address, topic)) == keyed([*MESSAGES, MESSAGES[0]])


def test_what_a_writer_left_open_never_was_and_the_writer_is_shut_out(broker: Broker, topic: str) -> None:
    paused = KafkaSink(broker.address, topic, {})
    paused.write(TABLE.slice(0, 1), Step(topic, "q-0"))
    assert paused._producer is not None
    paused._producer.begin_transaction()
    paused._produce(b'{"k": "half of a step"}')
    paused._producer.flush()
    KafkaSink(broker.address, topic, {}).write(TABLE.slice(1), Step(topic, "q-1"))
    paused._producer.produce(topic, b'{"k": "woken up"}')
    with pytest.raises(Exception, match="fenced"):
        paused._producer.commit_transaction()
    assert keyed(consume(broker.address, topic)) == MESSAGES


@pytest.mark.parametrize("step", [1, 3, 4])  # before, right after, and a while after the rows are committed
def test_a_crash_while_feeding_neither_loses_nor_repeats(broker: Broker, topic: str, tmp_path: Path, step: int) -> None:
    root, state = tmp_path / "results" / "c0", tmp_path / "sinks" / "q.json"
    for number in range(3):
        write_batch(root, number, [Row(1, number, number)])
    with crash_at(step):
        SinkFeeder("q", KafkaSink(broker.address, topic, {}), state).feed([part(root, 1)])
    write_batch(root, 3, [Row(1, 3, 3)])
    SinkFeeder("q", KafkaSink(broker.address, topic, {}), state).feed([part(root, 1)])
    assert sorted(row["v"] for row in consume(broker.address, topic)) == [0, 1, 2, 3]


def test_a_cluster_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "PATIENCE_S", 0.5)
    sink = KafkaSink("127.0.0.1:1", "t", {})
    with pytest.raises(
        SinkError, match=r"topic t at 127\.0\.0\.1:1 did not take results: .+\n    -> see to the cluster"
    ):
        sink.write(TABLE, Step("s", "q-0"))
