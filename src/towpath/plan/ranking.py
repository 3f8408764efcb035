"""The first rows of windows in the columns of a results log: what whoever closes windows needs to choose them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from towpath.lang.query import RankFunction
from towpath.plan.pipeline import Output, Pipeline
from towpath.plan.slots import RANKED, Item, item_of

RANKING = "ranking"  # the column that has it as a text


@dataclass(frozen=True)
class RankedBy:
    most: int
    function: RankFunction
    partition: tuple[str, ...]
    order: tuple[tuple[str, bool, bool], ...]  # a column, whether it descends, whether NULLs come first
    ties: tuple[str, ...]  # rows that are equal in that order are ordered by these
    count: str | None  # how many equal tuples a row stands for; None: it is one
    rank: str  # where the rank is put

    def dump(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def load(text: str) -> RankedBy:
    data: dict[str, Any] = json.loads(text)
    for key in ("partition", "ties"):
        data[key] = tuple(data[key])
    data["order"] = tuple(map(tuple, data["order"]))
    return RankedBy(**data)


def ranked_by(pipeline: Pipeline, places: Mapping[Item, str]) -> RankedBy:
    """`places` has the column of everything that the pipeline puts out."""
    ranking = pipeline.ranking
    assert ranking is not None, "only a pipeline with a ranking is ranked"

    def column(output: Output) -> str:
        return places[item_of(output)]

    return RankedBy(
        ranking.most,
        ranking.function,
        tuple(map(column, ranking.partition)),
        tuple((column(key.value), key.descending, key.nulls_first) for key in ranking.order),
        tuple(map(column, ranking.ties)),
        None if ranking.counted is None else places[ranking.counted],
        places[RANKED],
    )
