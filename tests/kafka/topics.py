"""Writing to and reading from topics in tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 30.0


def create(address: str, *topics: str, partitions: int = 2) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for topic in admin.create_topics([NewTopic(name, partitions, 1) for name in topics]).values():
        topic.result(PATIENCE_S)


def produce(address: str, topic: str, messages: Iterable[tuple[str | None, Mapping[str, Any] | str]]) -> None:
    """Keys with rows, which become JSON, or with texts, which stay as they are."""
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "enable.idempotence": True})
    for key, row in messages:
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
