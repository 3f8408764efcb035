"""Quantities as a user writes them: `4 ms`, `100 Mbps`, `2 GB`. A plain number is seconds, bytes or bytes a second."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator

from towpath.config.settings import refusal, shown

# Decimal, because 20 * 1e-6 is not 20e-6.
_TIMES = {
    unit: Decimal(seconds)
    for units, seconds in (
        ("ns", "1e-9"),
        ("us µs", "1e-6"),
        ("ms", "1e-3"),
        ("s sec second seconds", "1"),
        ("min minute minutes", "60"),
        ("h hour hours", "3600"),
    )
    for unit in units.split()
}
_SIZES = {
    "B": Decimal(1),
    **{f"{letter}B": Decimal(1000) ** power for letter, power in (("k", 1), ("K", 1), ("M", 2), ("G", 3), ("T", 4))},
    **{f"{letter}iB": Decimal(1024) ** power for power, letter in enumerate("KMGT", start=1)},
}
# The case of B and b distinguishes bytes from bits; that of the prefix means nothing.
_BITS = {
    f"{prefix}bps": Decimal(1000) ** power / 8
    for prefix, power in (("", 0), ("k", 1), ("K", 1), ("m", 2), ("M", 2), ("g", 3), ("G", 3))
}
_BANDWIDTHS = {**_BITS, **{f"{unit}/s": size for unit, size in _SIZES.items()}}

_QUANTITY = re.compile(r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([^\s0-9.].*)?")
UNLIMITED = "unlimited"


def seconds(value: object) -> float:
    return _quantity(value, _TIMES, "a duration", '"4 ms", "80 us" or "2 s"')


def size(value: object) -> float:
    if value == UNLIMITED:
        return math.inf
    return _quantity(value, _SIZES, "an amount of bytes", '"100 B", "2 GB" or "512 MiB"')


def bandwidth(value: object) -> float:
    """Bytes per second."""
    if value == UNLIMITED:
        return math.inf
    return _quantity(value, _BANDWIDTHS, "a bandwidth", '"100 Mbps" (bits) or "2 KB/s" (bytes)')


def _quantity(value: object, units: Mapping[str, Decimal], expected: str, example: str) -> float:
    text = "" if isinstance(value, bool) else str(value).strip()
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise refusal(f"expected {expected}, got {shown(value)}", f"write it like {example}")
    unit = match[2]
    if unit is not None and unit not in units:
        raise refusal(f"expected {expected}, got {shown(value)}: {shown(unit)} is no unit of it", f"as in {example}")
    number = float(Decimal(match[1]) * (1 if unit is None else units[unit]))
    if not math.isfinite(number):
        raise refusal(f"expected {expected} that is finite, got {shown(value)}", f"write it like {example}")
    return number


Seconds = Annotated[float, BeforeValidator(seconds)]
Bytes = Annotated[float, BeforeValidator(size)]
BytesPerSecond = Annotated[float, BeforeValidator(bandwidth)]
