"""Parameters that are drawn from a range, written as [least, most]."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from towpath.config.settings import Number, Whole, refusal, shown

_T = TypeVar("_T", int, float)


def _is_pair(value: object) -> object:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise refusal(f"expected the least and the most, got {shown(value)}", "write it like [2, 3]")
    return tuple(value)


def _ascends(pair: tuple[_T, _T]) -> tuple[_T, _T]:
    if pair[0] > pair[1]:
        raise refusal(f"expected the least before the most, got {shown(pair)}", f"write [{pair[1]}, {pair[0]}]")
    return pair


Counts = Annotated[
    tuple[Annotated[Whole, Field(ge=0)], Annotated[Whole, Field(ge=0)]],
    BeforeValidator(_is_pair),
    AfterValidator(_ascends),
]
Shares = Annotated[
    tuple[Annotated[Number, Field(gt=0)], Annotated[Number, Field(gt=0)]],
    BeforeValidator(_is_pair),
    AfterValidator(_ascends),
]
