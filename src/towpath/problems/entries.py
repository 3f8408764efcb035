"""The keys of a problem file, entry by entry. docs/placement.md describes every one."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from towpath.config.settings import ColumnType, Number, Settings, Whole, meant, plain_value, refusal, shown
from towpath.placement.cluster import NetworkLink, Node, Property
from towpath.placement.problem import Operator, OperatorKind, PlacementStream
from towpath.plan.fragments import DEFAULT, FRAGMENTERS
from towpath.problems.units import Bytes, BytesPerSecond, Seconds
from towpath.schema import Type

Rate = Annotated[Number, Field(ge=0, allow_inf_nan=False)]
Sql = Annotated[str, Field(min_length=1)]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_list)]


class NodeEntry(Settings):
    count: Whole | None = Field(None, ge=1, le=1_000_000)  # so many alike, numbered from 1
    cpu: Number = Field(1.0, ge=0, allow_inf_nan=False)  # 0: hands streams on and takes results in, but runs nothing
    memory: Bytes = Field(math.inf, gt=0)
    bandwidth: BytesPerSecond = Field(math.inf, gt=0)  # in each direction, where the next two do not say otherwise
    bandwidth_in: BytesPerSecond | None = Field(None, gt=0)
    bandwidth_out: BytesPerSecond | None = Field(None, gt=0)
    transfer_cost: Seconds = Field(0.0, ge=0)
    properties: dict[str, Annotated[Property, BeforeValidator(plain_value)]] = Field({})

    def node(self, name: str) -> Node:
        into = self.bandwidth if self.bandwidth_in is None else self.bandwidth_in
        out = self.bandwidth if self.bandwidth_out is None else self.bandwidth_out
        return Node(name, self.cpu, self.memory, into, out, self.properties, self.transfer_cost)


class LinkEntry(Settings):
    source: str = Field(alias="from", examples=["n1"])
    target: str = Field(alias="to", examples=["n2"])
    latency: Seconds | None = Field(None, ge=0)
    bandwidth: BytesPerSecond | None = Field(None, gt=0)
    both_ways: bool = False

    def links(self, latency: float, bandwidth: float) -> list[NetworkLink]:
        """What it does not say is as in the rest of the network."""
        own = latency if self.latency is None else self.latency
        wide = bandwidth if self.bandwidth is None else self.bandwidth
        there = NetworkLink(self.source, self.target, own, wide)
        return [there, NetworkLink(self.target, self.source, own, wide)] if self.both_ways else [there]


class NetworkEntry(Settings):
    latency: Seconds = Field(0.0, ge=0)
    bandwidth: BytesPerSecond = Field(math.inf, gt=0)
    medium: BytesPerSecond = Field(math.inf, gt=0)
    links: Any = None  # read one by one, or from a table
    latencies: str | None = None
    next_hops: str | None = None
    positions: str | None = None


class StreamEntry(Settings):
    node: str = Field(examples=["n1"])
    rate: Rate = Field(examples=[250])
    tuple_bytes: Bytes = Field(100.0, gt=0)
    columns: dict[str, ColumnType] | None = Field(None, alias="schema")
    time: str | None = Field(None, validate_default=True)

    @field_validator("time")
    @classmethod
    def _is_a_timestamp(cls, time: str | None, info: ValidationInfo) -> str | None:
        columns: dict[str, Type] | None = info.data.get("columns")
        if columns and (time is None or columns.get(time) is not Type.TIMESTAMP):
            hint = f"one of: {', '.join(c for c, t in columns.items() if t is Type.TIMESTAMP) or '(add one to schema)'}"
            raise refusal(f"expected the column of type timestamp that holds the event time, got {shown(time)}", hint)
        return time

    def stream(self, name: str) -> PlacementStream:
        return PlacementStream(name, self.node, self.rate, self.tuple_bytes)


class OperatorEntry(Settings):
    inputs: Names = Field(examples=["[bids]"], min_length=1)
    kind: OperatorKind = "filter"
    cost: Seconds = Field(0.0, ge=0)
    selectivity: Number = Field(1.0, ge=0, allow_inf_nan=False)
    state_bytes: Bytes = Field(0.0, ge=0, allow_inf_nan=False)
    tuple_bytes: Bytes = Field(100.0, gt=0, allow_inf_nan=False)
    signature: str | None = None

    def operator(self, name: str) -> Operator:
        return Operator(name, **{field: getattr(self, field) for field in type(self).model_fields})


class FragmentEntry(Settings):
    native: str | None = None
    operators: dict[str, Any] = Field(examples=["{f1: {inputs: [bids], cost: 20 us}}"])


class QueryEntry(Settings):
    sink: str | None = None
    copies: Whole = Field(1, ge=1)
    sql: Sql | None = None
    fragmenter: str = DEFAULT  # of sql
    fragments: dict[str, Any] | None = None
    operators: dict[str, Any] | None = None  # each a fragment of its own

    @field_validator("fragmenter")
    @classmethod
    def _is_known(cls, fragmenter: str) -> str:
        if fragmenter not in FRAGMENTERS:
            raise refusal(f"{shown(fragmenter)} is not a known fragmenter", meant(fragmenter, FRAGMENTERS))
        return fragmenter


class CostsEntry(Settings):
    """Seconds per tuple of the operators of queries that are given as SQL, until something is measured."""

    filter: Seconds = Field(20e-6, ge=0)
    project: Seconds = Field(5e-6, ge=0)
    join: Seconds = Field(80e-6, ge=0)
    aggregate: Seconds = Field(40e-6, ge=0)


class TopEntry(Settings):
    """The keys of the file itself; the sections are read one entry at a time."""

    generate: Any = None
    nodes: Any = None
    network: Any = None
    streams: Any = None
    queries: Any = None
    fragments: Any = None
    pinned: Any = None
    placement: Any = None
    costs: Any = None
    migration_cost: Rate = 0.0
