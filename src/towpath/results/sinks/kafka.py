"""A topic of Kafka as the sink of a query. Needs the package confluent-kafka, which is imported when a sink is opened.

A step is one transaction, and each of its messages carries the step's name. Whoever opens the sink takes over its
transactional id, which settles what a writer before left open and shuts that writer out. A step that was begun before
is then looked for in the topic: it is there as a whole, or not at all.

Kafka's own way to mark what was done, offsets within the transaction, is of no use here: librdkafka waits for ever when
the broker goes away meanwhile (its issues 5456 and 5511).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pydantic import Field, field_validator

from towpath import extras
from towpath.config.kafka import PREFIX, KafkaOptions, Servers, Topic, revealed
from towpath.config.settings import refusal
from towpath.errors import SinkError
from towpath.results.render import json_texts
from towpath.results.sinks.base import Sink, SinkDef, SinkStep

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer, TopicPartition

log = logging.getLogger(__name__)

PATIENCE_S = 20.0
AGAIN_S = 0.1
HEADER = "towpath-step"
SKEW_MS = 3_600_000  # by how much a broker's clock may be behind ours


class KafkaSink:
    """A message per row, as JSON. Readers that take committed messages only see each exactly once."""

    def __init__(self, servers: str, topic: str, options: Mapping[str, str]) -> None:
        self._topic = topic
        self._servers = servers
        self._settings = {"bootstrap.servers": servers} | {k.removeprefix(PREFIX): v for k, v in options.items()}
        self._producer: Producer | None = None

    def write(self, table: pa.Table, step: SinkStep) -> None:
        from confluent_kafka import KafkaException

        try:
            producer = self._open(step)
            if not (step.repeated and self._has(step)):
                self._commit(producer, table, step)
        except KafkaException as error:
            self._give_up()
            raise self._failure(error.args[0].str()) from error

    def _give_up(self) -> None:
        """Whoever opens the sink next takes back what was begun."""
        if self._producer is not None:
            self._producer.purge()
        self._producer = None

    def _failure(self, reason: str) -> SinkError:
        return SinkError(
            f"topic {self._topic} at {self._servers} did not take results: {reason}\n"
            "    -> see to the cluster; the results are in the log, and what is missing is written when it answers"
        )

    def _open(self, step: SinkStep) -> Producer:
        from confluent_kafka import Producer

        if self._producer is None:
            producer = Producer(self._settings | {"transactional.id": f"towpath-{step.sink}"}, logger=log)
            producer.init_transactions(PATIENCE_S)
            self._producer = producer
        return self._producer

    def _commit(self, producer: Producer, table: pa.Table, step: SinkStep) -> None:
        producer.begin_transaction()
        for text in json_texts(table):
            self._produce(producer, text.encode(), step.name)
        producer.commit_transaction(PATIENCE_S)

    def _produce(self, producer: Producer, value: bytes, step: str) -> None:
        while True:
            try:
                producer.produce(self._topic, value, headers={HEADER: step})
                producer.poll(0)
                return
            except BufferError:  # more rows than its queue holds: some must go out first
                producer.poll(1)

    def _has(self, step: SinkStep) -> bool:
        """Whether the step is in the topic. Only messages since it was begun are looked at."""
        with closing(self._reader("read_committed")) as reader, closing(self._reader("read_uncommitted")) as all_reader:
            wanted = self._partitions(reader, max(0, step.begun_ms - SKEW_MS))
            for partition in wanted:
                self._wait_until_visible(reader, partition, self._end(all_reader, partition))
            reader.assign(reader.offsets_for_times(wanted, PATIENCE_S))
            return self._finds(reader, {p.partition for p in wanted}, step.name.encode())

    def _wait_until_visible(self, reader: Consumer, partition: TopicPartition, end: int) -> None:
        """Behind a transaction that is still open may lie our own messages, which nobody can see yet."""
        given_up = time.monotonic() + PATIENCE_S
        while self._end(reader, partition) < end:
            if time.monotonic() > given_up:
                raise self._failure("somebody else's transaction is open, and hides whether they are there")
            time.sleep(AGAIN_S)

    def _end(self, reader: Consumer, partition: TopicPartition) -> int:
        found = reader.get_watermark_offsets(partition, PATIENCE_S)
        if found is None:
            raise self._failure("it does not say how far it goes")
        return found[1]

    def _finds(self, reader: Consumer, unread: set[int], name: bytes) -> bool:
        from confluent_kafka import KafkaError, KafkaException

        while unread:
            message = reader.poll(PATIENCE_S)
            if message is None:
                raise self._failure("it could not be read to its end")
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            if error is not None:
                unread.discard(message.partition() or 0)
            elif dict(message.headers() or []).get(HEADER) == name:
                return True
        return False

    def _reader(self, isolation: str) -> Consumer:
        from confluent_kafka import Consumer

        settings = {"group.id": "towpath", "isolation.level": isolation, "enable.auto.commit": False}
        return Consumer(self._settings | settings | {"enable.partition.eof": True}, logger=log)

    def _partitions(self, reader: Consumer, offset: int) -> list[TopicPartition]:
        from confluent_kafka import TopicPartition

        partitions = reader.list_topics(self._topic, timeout=PATIENCE_S).topics[self._topic].partitions
        return [TopicPartition(self._topic, number, offset) for number in partitions]


class KafkaSinkDef(SinkDef):
    type: Literal["kafka"]
    servers: Servers
    topic: Topic
    options: KafkaOptions = Field({}, examples=["{kafka.security.protocol: SSL}"])

    @field_validator("type")
    @classmethod
    def _can_be_written(cls, type_: str) -> str:
        if extras.missing("kafka"):
            raise refusal("needs the Python package confluent-kafka", extras.advice("kafka"))
        return type_

    @classmethod
    def open(cls, record: Mapping[str, str]) -> Sink:
        options = {key: value for key, value in record.items() if key.startswith(PREFIX)}
        return KafkaSink(record["servers"], record["topic"], revealed(options))

    @classmethod
    def identity(cls, record: Mapping[str, str]) -> Mapping[str, str]:
        """A cluster that gets new addresses or passwords is the same cluster, as it is for streams."""
        return {key: value for key, value in record.items() if key != "servers" and not key.startswith(PREFIX)}

    @classmethod
    def lane(cls, record: Mapping[str, str]) -> str:
        return f"{record['type']} {record['servers']}"
