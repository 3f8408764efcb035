"""What a job file says about a Kafka cluster, for streams and for results alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from towpath.config import environment
from towpath.config.settings import listed, refusal, shown
from towpath.errors import SinkError

PREFIX = "kafka."  # of the options that are Kafka's own

_SERVER = r"(\[[0-9A-Fa-f:.]+\]|[^\s,:\[\]]+):[0-9]{1,5}"
_SERVERS = re.compile(rf"{_SERVER}(,{_SERVER})*")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
# Who sets these breaks what towpath relies on.
_OURS = ("bootstrap.servers", "group.id", "transactional.id", "enable.idempotence")


def _are_servers(servers: str) -> str:
    if not _SERVERS.fullmatch(servers):
        raise refusal(f"expected hosts with ports, got {shown(servers)}", "write it like kafka1:9092,kafka2:9092")
    return servers


def _is_a_topic(topic: str) -> str:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise refusal(f"{shown(topic)} is not the name of a topic", "use at most 249 letters, digits, ., _ and -")
    return topic


def _text(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value


def _are_options(options: dict[str, str]) -> dict[str, str]:
    strange = [key for key in options if not key.startswith(PREFIX)]
    if strange:
        raise refusal(f"not options of Kafka: {listed(strange)}", "their names begin with kafka.")
    ours = [key for key in options if key.removeprefix(PREFIX) in _OURS]
    if ours:
        raise refusal(f"set by towpath: {listed(ours)}", "remove them")
    if missing := environment.unset(options.values()):
        raise refusal(f"not in the environment: {listed(missing)}", "set them where the job is started")
    return options


def revealed(options: Mapping[str, str]) -> dict[str, str]:
    """With what the environment has for each ${NAME}. Done where options are used, so that no file has a password."""
    if missing := environment.unset(options.values()):
        raise SinkError(
            f"options of Kafka: not in the environment: {listed(missing)}; set them, and start the job again"
        )
    return {key: environment.revealed(value) for key, value in options.items()}


Servers = Annotated[str, AfterValidator(_are_servers), Field(examples=["kafka1:9092,kafka2:9092"])]
Topic = Annotated[str, AfterValidator(_is_a_topic), Field(examples=["bids"])]
KafkaOptions = Annotated[dict[str, Annotated[str, BeforeValidator(_text)]], AfterValidator(_are_options)]
