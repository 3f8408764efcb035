"""towpath: thousands of standing SQL queries over live streams on Spark."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from towpath.errors import JobError, QueryError, RuntimeFailure, StoreError, TowpathError, UnknownQueryError

if TYPE_CHECKING:
    from towpath.api import Towpath, start
    from towpath.checking import check
    from towpath.explaining import explain
    from towpath.reader import Reader

__all__ = [
    "JobError",
    "QueryError",
    "Reader",
    "RuntimeFailure",
    "StoreError",
    "Towpath",
    "TowpathError",
    "UnknownQueryError",
    "check",
    "explain",
    "start",
]

_HOMES = {
    "Reader": "towpath.reader",
    "Towpath": "towpath.api",
    "check": "towpath.checking",
    "explain": "towpath.explaining",
    "start": "towpath.api",
}


def __getattr__(name: str) -> Any:
    # Spark's Python workers import this package for every micro-batch; they must not pay for the whole product.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'towpath' has no attribute {name!r}")
