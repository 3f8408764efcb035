"""The workloads that `make test` and `make test-live` run on Spark, by their seeds."""

from __future__ import annotations

SEEDS = (10, 15, 20, 22, 74)
SEEDS_ON_THE_MOVE = (46, 75)
