"""The batch oracle: what a query must have emitted, computed by DuckDB over the recorded input, and the comparison."""

from __future__ import annotations

from towpath.verify.answer import Checked, Oracle, answer
from towpath.verify.compare import Difference, differences
from towpath.verify.oracle import batch_sql, expected

__all__ = ["Checked", "Difference", "Oracle", "answer", "batch_sql", "differences", "expected"]
