"""From a checked query to what carriers run.

Query -> operators (build) -> rewrites -> pipeline (normal form, signature) -> template and assignment rows;
fragments cut the same operators into the units of placement. `show` puts all of it into words.
"""

from __future__ import annotations

from enum import StrEnum

# Here and not in cut.py, so that they can be named without importing sqlglot.
WHOLE, CUT = "one_per_query", "one_per_operator"  # how the fragments of a query are made when it runs


class CarrierKinds(StrEnum):
    """Which carriers a job has."""

    COMPILED = "compiled"  # with plans of their own, for each family
    UNIVERSAL = "universal"  # one for all shapes, wherever it can run them
    AUTO = "auto"  # whichever is cheaper
