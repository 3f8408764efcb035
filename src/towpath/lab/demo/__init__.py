"""The demonstration: a made-up auction market, many standing queries over it, and the check of every answer."""

from __future__ import annotations

# Here and not in queries.py, so that it can be named without importing numpy and Arrow.
FEWEST = 100  # standing queries: all shapes, and some to come and go
QUERIES, SECONDS = 300, 70  # unless somebody asks for others
