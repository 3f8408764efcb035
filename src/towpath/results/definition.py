"""The sinks a query of a job file can name. A new kind is one more class here, and one more member of `Sink`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Literal

from pydantic import Field, field_validator

from towpath.kafka import KafkaOptions, Servers, Topic
from towpath.settings import Location, Settings, refusal


class SinkDef(Settings):
    def record(self) -> dict[str, str]:
        """As the journal keeps it: names and texts."""
        values = self.model_dump()
        return values.pop("options", {}) | {key: str(value) for key, value in values.items()}


class ParquetSink(SinkDef):
    type: Literal["parquet"]
    path: Location = Field(examples=["./out"])


class KafkaSink(SinkDef):
    type: Literal["kafka"]
    servers: Servers
    topic: Topic
    options: KafkaOptions = Field({}, examples=["{kafka.security.protocol: SSL}"])

    @field_validator("type")
    @classmethod
    def _can_be_written(cls, type_: str) -> str:
        if find_spec("confluent_kafka") is None:
            raise refusal("needs the Python package confluent-kafka", "pip install 'towpath[kafka]'")
        return type_


class ConsoleSink(SinkDef):
    type: Literal["console"]


class MemorySink(SinkDef):
    type: Literal["memory"]


Sink = Annotated[ParquetSink | KafkaSink | ConsoleSink | MemorySink, Field(discriminator="type")]
SINKS: dict[str, type[Settings]] = {
    "parquet": ParquetSink,
    "kafka": KafkaSink,
    "console": ConsoleSink,
    "memory": MemorySink,
}
