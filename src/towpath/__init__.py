"""towpath: thousands of standing SQL queries over live streams on Spark."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from towpath.errors import JobError, QueryError, RuntimeFailure, StoreError, TowpathError, UnknownQueryError

if TYPE_CHECKING:
    from towpath.api.checking import check
    from towpath.api.explaining import explain
    from towpath.api.frame import Frame
    from towpath.api.reader import Reader
    from towpath.api.running import Towpath, start

__all__ = [
    "Frame",
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
    "Frame": "towpath.api.frame",
    "Reader": "towpath.api.reader",
    "Towpath": "towpath.api.running",
    "check": "towpath.api.checking",
    "explain": "towpath.api.explaining",
    "start": "towpath.api.running",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("towpath")
    # Spark's Python workers import this package for every micro-batch; they must not pay for the whole product.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'towpath' has no attribute {name!r}")
