"""From the parameters of a generator, as they travel in Spark's options, to the generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from towpath.streams.auction import auction
from towpath.streams.base import Generator
from towpath.streams.counter import counter
from towpath.streams.traffic import traffic

GENERATORS: dict[str, Callable[..., Generator]] = {"auction": auction, "traffic": traffic, "rate": counter}


def generator(parameters: Mapping[str, Any]) -> Generator:
    """The generator that `parameters["type"]` names; the others are its arguments and may have been through JSON."""
    return GENERATORS[parameters["type"]](**{k: v for k, v in parameters.items() if k != "type"})
