"""A topic of Kafka as the sink of a query. Needs the package confluent-kafka, which is imported when a sink is opened.

A step is one transaction: its rows, and its name as the mark of a consumer group that nobody consumes with. So the mark
is there if and only if the rows are. Whoever opens the sink first takes over its transactional id, which settles what a
writer before left open and shuts that writer out, and then looks at the mark: a step that has it is not written again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from towpath.errors import SinkError
from towpath.kafka import PREFIX
from towpath.results.render import json_texts
from towpath.results.sinks import Step

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer, TopicPartition

log = logging.getLogger(__name__)

PATIENCE_S = 20.0


class KafkaSink:
    """A message per row, as JSON. Readers that take committed messages only see each exactly once."""

    def __init__(self, servers: str, topic: str, options: Mapping[str, str]) -> None:
        self._topic = topic
        self._servers = servers
        self._settings = {"bootstrap.servers": servers} | {k.removeprefix(PREFIX): v for k, v in options.items()}
        self._producer: Producer | None = None
        self._marks: Consumer | None = None
        self._last = ""  # the name of the step that was committed last

    def write(self, table: pa.Table, step: Step) -> None:
        from confluent_kafka import KafkaException

        try:
            if self._producer is None:
                self._open(f"towpath-{step.sink}")
            if step.name != self._last:
                self._commit(table, step.name)
        except KafkaException as error:
            self._close()
            raise SinkError(
                f"topic {self._topic} at {self._servers} did not take results: {error.args[0].str()}\n"
                "    -> see to the cluster; the results are in the log, and what is missing is written when it answers"
            ) from error

    def _open(self, name: str) -> None:
        from confluent_kafka import Consumer, Producer

        self._marks = Consumer(self._settings | {"group.id": name, "enable.auto.commit": False}, logger=log)
        self._producer = Producer(self._settings | {"transactional.id": name}, logger=log)
        self._producer.init_transactions(PATIENCE_S)
        (mark,) = self._marks.committed([self._mark()], timeout=PATIENCE_S)
        self._last = mark.metadata or ""

    def _commit(self, table: pa.Table, name: str) -> None:
        assert self._producer is not None and self._marks is not None
        self._producer.begin_transaction()
        for text in json_texts(table):
            self._produce(text.encode())
        group = self._marks.consumer_group_metadata()
        self._producer.send_offsets_to_transaction([self._mark(name)], group, PATIENCE_S)
        self._producer.commit_transaction(PATIENCE_S)
        self._last = name

    def _produce(self, value: bytes) -> None:
        assert self._producer is not None
        while True:
            try:
                self._producer.produce(self._topic, value)
                self._producer.poll(0)
                return
            except BufferError:  # more rows than its queue holds: some must go out first
                self._producer.poll(1)

    def _mark(self, name: str = "") -> TopicPartition:
        from confluent_kafka import TopicPartition

        return TopicPartition(self._topic, 0, 0, name)

    def _close(self) -> None:
        """What was begun is given up by whoever opens the sink next."""
        if self._producer is not None:
            self._producer.purge()
        if self._marks is not None:
            self._marks.close()
        self._producer = self._marks = None
