"""Writing to and reading from topics in tests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 30.0


def create(address: str, *topics: str, partitions: int = 2) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for topic in admin.create_topics([NewTopic(name, partitions, 1) for name in topics]).values():
        topic.result(PATIENCE_S)


def produce(address: str, topic: str, *steps: Iterable[tuple[str | None, Mapping[str, Any] | str]]) -> None:
    """Keys with rows, which become JSON, or texts, which stay as they are; a step begins when the last is there."""
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "enable.idempotence": True})
    for step in steps:
        for key, row in step:
            producer.produce(topic, row if isinstance(row, str) else json.dumps(row, default=str), key)
        assert producer.flush(PATIENCE_S) == 0, "the broker does not take messages"


def consume(address: str, topic: str) -> list[dict[str, Any]]:
    """Everything that is committed, by the order of partitions."""
    settings = {"bootstrap.servers": address, "group.id": "test", "isolation.level": "read_committed"}
    consumer = Consumer(settings | {"enable.partition.eof": True, "enable.auto.commit": False, "log_level": 0})
    try:
        partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
        rows, ended = [], 0
        while ended < len(partitions):
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "the broker does not answer"
            if message.error():
                ended += 1
            else:
                rows.append(json.loads(message.value()))
        return rows
    finally:
        consumer.close()


def wait_until_closed(address: str, *topics: str) -> None:
    """Until no transaction is open in them.

    A lone broker that is killed after it has answered a commit, and before it has marked it in the topic, may never do
    so.
    """
    end = time.monotonic() + PATIENCE_S
    while any(_end(address, topic, "read_committed") < _end(address, topic, "read_uncommitted") for topic in topics):
        assert time.monotonic() < end, "a transaction stays open"
        time.sleep(0.1)


def _end(address: str, topic: str, isolation: str) -> int:
    settings = {"bootstrap.servers": address, "group.id": "test", "isolation.level": isolation, "log_level": 0}
    with closing(Consumer(settings)) as consumer:
        partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), PATIENCE_S) for p in partitions]
        return sum(end for _, end in ends)
