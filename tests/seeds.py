"""The workloads that `make test` runs on Spark, by their seeds."""

from __future__ import annotations

SEEDS = (10, 15, 20, 22, 24, 74)
SEEDS_ON_THE_MOVE = (46, 75)
