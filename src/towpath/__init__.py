"""towpath: thousands of standing SQL queries over live streams on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from towpath.errors import JobError, QueryError, RuntimeFailure, StoreError, TowpathError, UnknownQueryError

if TYPE_CHECKING:
    from towpath.api import Reader, Towpath, start

__all__ = [
    "JobError",
    "QueryError",
    "Reader",
    "RuntimeFailure",
    "StoreError",
    "Towpath",
    "TowpathError",
    "UnknownQueryError",
    "start",
]


def __getattr__(name: str) -> Any:
    # Spark's Python workers import this package for every micro-batch; they must not pay for the whole product.
    if name in ("Reader", "Towpath", "start"):
        from towpath import api

        return getattr(api, name)
    raise AttributeError(f"module 'towpath' has no attribute {name!r}")
