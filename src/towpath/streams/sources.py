"""The sources a stream of a job file can have. A new kind is one more class here, and one more member of `Source`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from towpath.arrow import ARROW
from towpath.config.columns import WrittenFields
from towpath.config.kafka import KafkaOptions, Servers, Topic
from towpath.config.settings import Duration, Instant, Location, Number, Settings, Whole, listed, refusal, shown
from towpath.schema import Column, Type
from towpath.streams.fields import as_pairs
from towpath.streams.registry import generator
from towpath.streams.timeformat import EPOCHS, time_format_fault

START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z

_TYPES = {arrow: type_ for type_, arrow in ARROW.items()}


_TIMES = {
    "json": "or leave it out for texts such as 2026-01-31T12:00:00Z",
    "parquet": "remove it: a timestamp of Parquet says itself what it is",
}


def _names_one_column(where: dict[str, str | int | bool] | None) -> dict[str, str | int | bool] | None:
    if where is not None and len(where) != 1:
        raise refusal(f"expected one column with its value, got {len(where)}", "write it like {device: pump7}")
    return where


def _can_be_asked_for(value: object) -> object:
    if not isinstance(value, str | int) and not (isinstance(value, float) and value.is_integer()):
        message = f"expected a text, a whole number, true or false, got {shown(value)}"
        raise refusal(message, "it is what the column has in the rows of this stream, as in {device: pump7}")
    return value


# Several streams in one place, distinguished by the value of a column.
Asked = Annotated[str | int | bool, BeforeValidator(_can_be_asked_for)]
Where = Annotated[dict[str, Asked] | None, AfterValidator(_names_one_column), Field(examples=["{device: pump7}"])]


def _part(where: dict[str, str | int | bool] | None) -> tuple[str, str] | None:
    if where is None:
        return None
    ((column, value),) = where.items()
    return column, str(value).lower() if isinstance(value, bool) else str(value)


class FilesSource(Settings):
    """A folder in which files appear."""

    type: Literal["files"]
    path: Location = Field(examples=["./bids"])
    format: Literal["parquet", "csv", "json"] = Field(examples=["parquet"])
    header: bool = True  # this and the next two: of CSV
    delimiter: str = Field(",", examples=['";"'])
    nulls: list[str] = Field([], examples=["[NA, null]"])  # beside nothing at all
    time_format: str | None = Field(None, examples=['"%d.%m.%Y %H:%M:%S"'])
    glob: str = Field("*", min_length=1, examples=['"*.csv"'])
    fields: WrittenFields = Field({}, examples=["{user_id: user.id}"])
    where: Where = None

    @field_validator("path")
    @classmethod
    def _is_a_folder(cls, path: str) -> str:
        if "://" not in path and not Path(path).is_dir():
            what = "is a file" if Path(path).exists() else "does not exist"
            raise refusal(f"expected a folder, but {path} {what}", "a path is relative to the job file")
        return path

    @field_validator("header")
    @classmethod
    def _is_csv(cls, header: bool, info: ValidationInfo) -> bool:
        if info.data.get("format", "csv") != "csv":
            raise refusal(f"a {info.data['format']} file has no header line", "remove it, or set format: csv")
        return header

    @field_validator("delimiter", "nulls")
    @classmethod
    def _is_of_csv(cls, value: object, info: ValidationInfo) -> object:
        if info.data.get("format", "csv") != "csv":
            raise refusal(f"{info.field_name} is for csv files, not for {info.data['format']}", "remove it")
        return value

    @field_validator("delimiter")
    @classmethod
    def _divides(cls, delimiter: str) -> str:
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\r\n\0\\':
            raise refusal(f"expected one sign, got {shown(delimiter)}", 'write it like ";" or "|"; "\\t" is a tab')
        return delimiter

    @field_validator("time_format")
    @classmethod
    def _is_a_format(cls, format_: str | None, info: ValidationInfo) -> str | None:
        kind = info.data.get("format", "csv")
        if format_ is None or (kind == "json" and format_ in EPOCHS):
            return format_
        if kind != "csv":
            raise refusal(f"expected one of {listed(EPOCHS)} for {kind}, got {shown(format_)}", _TIMES[kind])
        wrong = time_format_fault(format_)
        if wrong:
            raise refusal(f"{shown(format_)} is no format of times: {wrong}", 'write it like "%d.%m.%Y %H:%M:%S"')
        return format_

    @property
    def part(self) -> tuple[str, str] | None:
        """The column that distinguishes this stream's rows from those of others in the folder, and its value."""
        return _part(self.where)

    @property
    def origin(self) -> str:
        """Nothing: streams of files are aligned with each other by a feed, wherever they come from."""
        return ""


class KafkaSource(Settings):
    """A topic of Kafka."""

    type: Literal["kafka"]
    servers: Servers
    topic: Topic
    format: Literal["json"] = Field("json", examples=["json"])
    time_format: Literal["epoch seconds", "epoch ms", "epoch us"] | None = Field(None, examples=["epoch ms"])
    start: Literal["earliest", "latest"] = Field("earliest", examples=["earliest"])
    fields: WrittenFields = Field({}, examples=["{user_id: user.id}"])
    where: Where = None
    key: str | None = Field(None, examples=["pump7"])  # only messages with this key
    options: KafkaOptions = Field({}, examples=["{kafka.security.protocol: SSL}"])

    @field_validator("key")
    @classmethod
    def _is_the_only_part(cls, key: str | None, info: ValidationInfo) -> str | None:
        if key is not None and info.data.get("where") is not None:
            raise refusal(f"expected where or key, got both ({shown(key)})", "remove one of them")
        return key

    @property
    def part(self) -> tuple[str, str] | None:
        """The column that distinguishes this stream's rows from those of others in the topic, and its value."""
        return _part(self.where)

    @property
    def origin(self) -> str:
        """Topics have a watermark each, so streams are read together only if one subscription can serve them.

        Servers and options are not part of it: a cluster that gets new addresses or passwords is the same cluster.
        """
        apart = f"by {self.part[0]}" if self.part else "by its key" if self.key is not None else "as a whole"
        times = f", times as {self.time_format}" if self.time_format else ""
        fields = f", fields {json.dumps(as_pairs(self.fields))}" if self.fields else ""
        return f"topic {self.topic} from its {self.start}, {apart}{times}{fields}"


class RateSource(Settings):
    """A counter and the time at which it ticks."""

    type: Literal["rate"]
    rate: Whole = Field(gt=0, examples=[100])  # Spark takes whole rows per second

    @property
    def time(self) -> str:
        return "timestamp"

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("value", Type.BIGINT), Column("timestamp", Type.TIMESTAMP))

    @property
    def disorder_us(self) -> int:
        return 0

    @property
    def stream_rate(self) -> float:
        return float(self.rate)


class _GeneratorSource(Settings):
    """What every generator takes. `model_dump()` gives the parameters of `registry.generator`."""

    rate: Number = Field(gt=0, allow_inf_nan=False, examples=[5000])
    seed: Whole = 0
    rows: Annotated[Whole, Field(gt=0)] | None = None
    start_us: Instant = Field(START_US, alias="start")
    disorder_us: Duration = Field(0, alias="disorder")

    @property
    def time(self) -> str:
        return "at"

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(f.name, _TYPES[f.type]) for f in generator(self.model_dump()).schema)

    @property
    def stream_rate(self) -> float:
        return generator(self.model_dump()).rate


class AuctionSource(_GeneratorSource):
    """One table of a made-up auction market; `rate` is of the whole market."""

    type: Literal["auction"]
    table: Literal["persons", "auctions", "bids"] = Field(examples=["bids"])


class TrafficSource(_GeneratorSource):
    """One of many made-up road sensors; `rate` is of all of them."""

    type: Literal["traffic"]
    sensors: Whole = Field(ge=1, examples=[96])
    sensor: Whole = Field(ge=1, examples=[1])

    @field_validator("sensor")
    @classmethod
    def _is_one_of_them(cls, sensor: int, info: ValidationInfo) -> int:
        sensors = info.data.get("sensors", sensor)
        if sensor > sensors:
            raise refusal(f"expected a sensor from 1 to {sensors}, got {sensor}", "raise sensors, or lower sensor")
        return sensor


SourceDef = Annotated[
    FilesSource | KafkaSource | RateSource | AuctionSource | TrafficSource, Field(discriminator="type")
]
DESCRIBED = (FilesSource, KafkaSource)  # the sources whose columns the job file names
SOURCES: dict[str, type[Settings]] = {
    "files": FilesSource,
    "kafka": KafkaSource,
    "rate": RateSource,
    "auction": AuctionSource,
    "traffic": TrafficSource,
}
