"""Results in a topic: each row once for readers of committed messages, whenever the writer dies."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from results.logs import Row, crash_at, part, write_batch
from towpath.errors import SinkError
from towpath.results import KafkaSink, SinkFeeder, SinkStep
from towpath.results.sinks import kafka as sinks

from .broker import Broker
from .topics import consume, create, wait_until_closed

TABLE = pa.table({"k": [1, 2, 3], "x": [0.5, None, float("nan")]})
MESSAGES = [{"k": 1, "x": 0.5}, {"k": 2, "x": None}, {"k": 3, "x": "NaN"}]


@pytest.fixture
def topic() -> str:
    return f"results-{uuid.uuid4().hex[:8]}"


def step(sink: str, number: int, *, repeated: bool = False) -> SinkStep:
    return SinkStep(sink, f"q-{number}", time.time_ns() // 1_000_000, repeated)


def keyed(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=str)


def test_rows_are_messages(broker: Broker, topic: str) -> None:
    KafkaSink(broker.address, topic, {"kafka.compression.type": "zstd"}).write(TABLE, step(topic, 0))
    assert keyed(consume(broker.address, topic)) == MESSAGES


def test_a_step_that_is_repeated_after_a_crash_is_not_written_again(broker: Broker, topic: str) -> None:
    for repeated in (False, True):
        KafkaSink(broker.address, topic, {}).write(TABLE, step(topic, 0, repeated=repeated))
    KafkaSink(broker.address, topic, {}).write(TABLE.slice(0, 1), step(topic, 1, repeated=True))
    assert keyed(consume(broker.address, topic)) == keyed([*MESSAGES, MESSAGES[0]])


def test_what_a_writer_left_open_never_was_and_the_writer_is_shut_out(broker: Broker, topic: str) -> None:
    paused = KafkaSink(broker.address, topic, {})
    paused.write(TABLE.slice(0, 1), step(topic, 0))
    assert paused._producer is not None
    paused._producer.begin_transaction()
    paused._producer.produce(topic, b'{"k": "half of a step"}', headers={sinks.HEADER: "q-1"})
    paused._producer.flush()
    KafkaSink(broker.address, topic, {}).write(TABLE.slice(1), step(topic, 1, repeated=True))
    paused._producer.produce(topic, b'{"k": "woken up"}')
    with pytest.raises(Exception, match="fenced"):
        paused._producer.commit_transaction()
    assert keyed(consume(broker.address, topic)) == MESSAGES


@pytest.mark.parametrize("crash", [1, 3, 4])  # before, right after, and a while after the rows are committed
def test_a_crash_neither_loses_nor_repeats(broker: Broker, topic: str, tmp_path: Path, crash: int) -> None:
    root, state = tmp_path / "results" / "c0", tmp_path / "sinks" / "q.json"
    for number in range(3):
        write_batch(root, number, [Row(1, number, number)])
    with crash_at(crash):
        SinkFeeder("q", KafkaSink(broker.address, topic, {}), state).feed([part(root, 1)])
    write_batch(root, 3, [Row(1, 3, 3)])
    SinkFeeder("q", KafkaSink(broker.address, topic, {}), state).feed([part(root, 1)])
    assert sorted(row["v"] for row in consume(broker.address, topic)) == [0, 1, 2, 3]


def test_somebody_elses_open_transaction_hides_nothing(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps readers from seeing what we wrote after it, so whether a step is there cannot be said before it ends."""
    create(broker.address, topic, partitions=1)
    other = Producer({"bootstrap.servers": broker.address, "transactional.id": f"other-{topic}"})
    other.init_transactions()
    other.begin_transaction()
    other.produce(topic, b"{}")
    other.flush()
    KafkaSink(broker.address, topic, {}).write(TABLE, step(topic, 0))
    with monkeypatch.context() as impatient, pytest.raises(SinkError, match="somebody else's transaction is open"):
        impatient.setattr(sinks, "PATIENCE_S", 2.0)
        KafkaSink(broker.address, topic, {}).write(TABLE, step(topic, 0, repeated=True))
    other.abort_transaction()
    KafkaSink(broker.address, topic, {}).write(TABLE, step(topic, 0, repeated=True))
    assert keyed(consume(broker.address, topic)) == MESSAGES


def test_a_broker_that_dies_is_waited_for(broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = KafkaSink(broker.address, topic, {})
    sink.write(TABLE.slice(0, 1), step(topic, 0))
    wait_until_closed(broker.address, topic)
    broker.kill()
    with monkeypatch.context() as impatient, pytest.raises(SinkError, match="did not take results"):
        impatient.setattr(sinks, "PATIENCE_S", 2.0)
        sink.write(TABLE.slice(1), step(topic, 1))
    broker.start()
    sink.write(TABLE.slice(1), step(topic, 1, repeated=True))
    assert keyed(consume(broker.address, topic)) == MESSAGES


def test_a_cluster_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "PATIENCE_S", 0.5)
    sink = KafkaSink("127.0.0.1:1", "t", {})
    with pytest.raises(
        SinkError, match=r"topic t at 127\.0\.0\.1:1 did not take results: .+\n    -> see to the cluster"
    ):
        sink.write(TABLE, step("s", 0))
