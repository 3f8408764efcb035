"""How timestamps are written: as DuckDB's `strptime` knows them (CSV), or as numbers since 1970 (JSON)."""

from __future__ import annotations

import re

EPOCHS = {"epoch seconds": 1_000_000, "epoch ms": 1_000, "epoch us": 1}  # microseconds
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999

# What a moment is made of. Without these a text would be some time of 1900, or of no day.
_DAY = ({"Y", "y"}, {"m", "b", "B", "-m"}, {"d", "-d"})
_KNOWN = {*"YymbBdHIMSfgnpzZaAjuw", "-m", "-d", "-H", "-I", "-M", "-S", "-y", "-j", "%"}
_PLACE = re.compile(r"%(-?.?)")


def time_format_fault(format_: str) -> str | None:
    """What is wrong with it; None if nothing is."""
    places = _PLACE.findall(format_)
    strange = [place for place in places if place not in _KNOWN]
    if strange:
        return f"%{strange[0]} stands for nothing"
    if not all(part & set(places) for part in _DAY):
        return "it needs a year (%Y), a month (%m) and a day (%d)"
    return None
