"""The nodes a job file can name: places that run carriers. A new kind is one more class here, and one more of NODES."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from towpath.config.settings import Location, Milliseconds, Plain, Settings, Whole, listed, refusal, shown
from towpath.errors import RuntimeFailure

LEAST_MEMORY_MB = 512  # Spark refuses to start below 450 MB

_SECRET = re.compile(r"token=[^;\s]*")
_TOKEN = re.compile(r"[!-~]+")  # what fits into a header
_ADDRESS = re.compile(r"sc://[^\s/;]+(:\d{1,5})?(/;?|/(;[^\s;=]+=[^\s;]*)+;?)?")


def _setting_text(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value


def _are_spark_settings(spark: dict[str, str]) -> dict[str, str]:
    strange = [key for key in spark if not key.startswith("spark.")]
    if strange:
        raise refusal(f"not settings of Spark: {listed(strange)}", "their names begin with spark.")
    return spark


Cores = Annotated[Whole, Field(ge=1, examples=[2])]
SparkSettings = Annotated[
    dict[str, Annotated[str, BeforeValidator(_setting_text)]], AfterValidator(_are_spark_settings)
]


Properties = dict[str, Plain]  # open: what a policy may ask for


class EmbeddedNode(Settings):
    """Spark inside this process."""

    type: Literal["embedded"] = Field(examples=["embedded"])
    cores: Cores
    memory: str = Field("4g", examples=["4g"])
    jars: list[Location] = Field([], examples=["[./jars/connector.jar]"])  # else what a job needs is fetched
    spark: SparkSettings = Field({})
    properties: Properties = Field({}, examples=["{site: berlin}"])

    @field_validator("jars")
    @classmethod
    def _are_there(cls, jars: list[str]) -> list[str]:
        missing = [jar for jar in jars if "://" not in jar and not Path(jar).is_file()]
        if missing:
            raise refusal(f"expected jar files, and these are none: {listed(missing)}", "paths begin at the job file")
        return jars

    @field_validator("memory")
    @classmethod
    def _is_enough(cls, memory: str) -> str:
        match = re.fullmatch(r"([0-9]{1,9})([mg])", memory.lower())
        if match is None:
            raise refusal(f"expected an amount of memory, got {shown(memory)}", "write it like 512m or 4g")
        if int(match[1]) * (1024 if match[2] == "g" else 1) < LEAST_MEMORY_MB:
            raise refusal(f"expected at least {LEAST_MEMORY_MB}m, got {memory}", "Spark does not start with less")
        return memory.lower()


class ConnectNode(Settings):
    """A Spark Connect endpoint: one process on this machine, or a whole cluster."""

    type: Literal["connect"] = Field(examples=["connect"])
    address: str = Field(examples=["sc://spark.example:15002"])
    token_file: Location | None = None  # holds the token that the endpoint asks for
    lost_after_ms: Milliseconds = Field(15_000, alias="lost_after")  # without a sign of life
    cores: Cores
    spark: SparkSettings = Field({})
    properties: Properties = Field({}, examples=["{site: berlin}"])

    @property
    def plain_address(self) -> str:
        """Without the options that may follow it, of which one may be a token."""
        return self.address.partition("/;")[0]

    @property
    def options(self) -> dict[str, str]:
        """Those of Spark's client that follow the address."""
        pairs = (text.partition("=") for text in self.address.partition("/;")[2].split(";") if text)
        return {key: unquote(value) for key, _, value in pairs}

    @field_validator("token_file")
    @classmethod
    def _is_there(cls, file: str | None) -> str | None:
        if file is not None and not Path(file).is_file():
            raise refusal(f"expected a file with the token, and {file} is none", "a path is relative to the job file")
        return file

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str) -> str:
        if _ADDRESS.fullmatch(address) is None:
            raise refusal(
                f"expected the address of a Spark Connect endpoint, got {shown(_SECRET.sub('token=...', address))}",
                "write it like sc://host:15002",
            )
        if "session_id=" in address or "user_id=" in address:
            raise refusal("the session is towpath's own", "leave user_id and session_id out of the address")
        return address


def read_token(file: Path) -> str:
    """Of a file with nothing else in it. No message about it shows what is in the file."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise RuntimeFailure(f"{file}: expected a file with the token: {why}") from None
    if _TOKEN.fullmatch(text) is None:
        raise RuntimeFailure(
            f"{file}: expected a file with the token, one word of letters, digits and signs, and nothing else"
        )
    return text


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


NodeDef = EmbeddedNode | ConnectNode
NODES: dict[str, type[NodeDef]] = {"embedded": EmbeddedNode, "connect": ConnectNode}
