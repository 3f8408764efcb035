"""The workloads that `make test` and `make test-live` run on Spark, by their seeds."""

from __future__ import annotations

SEEDS = (4, 25, 64, 65)
SEEDS_ON_THE_MOVE = (22, 59, 77)
