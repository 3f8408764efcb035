"""The `control` section of a job file: who places and moves what runs, and within which limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from towpath.config.settings import Duration, Number, Plain, Settings, Whole, refusal

Positive = Annotated[Duration, Field(gt=0)]
Cores = Annotated[Whole, Field(ge=1)]


class LimitsDef(Settings):
    """Against restlessness."""

    rest_us: Duration = Field(60_000_000, alias="rest", examples=["1 minute"])
    per_node: Whole = Field(20, ge=1, examples=[20])
    per_minute: Whole = Field(100, ge=1, examples=[100])


class AdmissionDef(Settings):
    """When a query is refused for want of room."""

    most_load: Number = Field(0.9, gt=0, examples=[0.9])  # of a node's cores
    by: Literal["load", "planner"] = Field("load", examples=["planner"])


class ScalingDef(Settings):
    """Nodes that come and go with the load."""

    start: Literal["local"] = Field(examples=["local"])  # servers of this machine
    least: Whole = Field(1, alias="min", ge=1, examples=[1])
    most: Whole = Field(alias="max", ge=1, examples=[4])
    above: Number = Field(0.8, gt=0, examples=[0.8])
    below: Number = Field(0.3, ge=0, examples=[0.3])
    after_us: Positive = Field(30_000_000, alias="after", examples=["30 seconds"])
    cores: Cores = Field(1, examples=[1])
    memory: str = Field("2g", examples=["2g"])
    properties: dict[str, Plain] = Field({}, examples=["{site: berlin}"])

    @model_validator(mode="after")
    def _bounds_are_apart(self) -> Self:
        if self.most < self.least:
            raise refusal(f"expected max to be at least min, got {self.most} and {self.least}")
        if self.below >= self.above:
            raise refusal(f"expected below to be less than above, got {self.below:g} and {self.above:g}")
        return self


class ControlDef(Settings):
    planner: str = Field("first_fit", min_length=1, examples=["round_robin"])
    planner_options: dict[str, Any] = Field({}, examples=["{most_load: 0.5}"])
    policy: str = Field("static", min_length=1, examples=["dcape"])
    options: dict[str, Any] = Field({}, examples=["{every: 30}"])  # of the policy
    every_us: Positive = Field(10_000_000, alias="every", examples=["10 seconds"])  # how often is measured
    renew_us: Positive = Field(120_000_000, alias="renew", examples=["2 minutes"])
    change_carriers: bool = Field(True, examples=["false"])
    advise: bool = Field(False, examples=["true"])
    limits: LimitsDef = Field(LimitsDef.model_validate({}))
    admission: AdmissionDef | None = None
    scaling: ScalingDef | None = None
