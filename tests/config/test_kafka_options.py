"""A password of Kafka's is in the environment, and in no file."""

from __future__ import annotations

import pytest

from towpath.config.kafka import revealed
from towpath.errors import SinkError
from towpath.results.sinks.kafka import KafkaSinkDef


def test_a_name_stands_for_what_the_environment_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWPATH_SECRET", "s3$cret}")
    options = {"kafka.sasl.password": "${TOWPATH_SECRET}", "kafka.client.id": "a-${TOWPATH_SECRET}-b", "kafka.x": "$y"}
    assert revealed(options) == {
        "kafka.sasl.password": "s3$cret}",
        "kafka.client.id": "a-s3$cret}-b",
        "kafka.x": "$y",
    }


def test_the_journal_keeps_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setenv("TOWPATH_SECRET", "hidden")
    options = {"kafka.sasl.password": "${TOWPATH_SECRET}"}
    sink = KafkaSinkDef.model_validate({"type": "kafka", "servers": "k:9092", "topic": "t", "options": options})
    assert "hidden" not in str(sink.record())


def test_what_is_not_there_is_reported() -> None:
    with pytest.raises(SinkError, match="not in the environment: TOWPATH_NOT_SET"):
        revealed({"kafka.sasl.password": "${TOWPATH_NOT_SET}"})
