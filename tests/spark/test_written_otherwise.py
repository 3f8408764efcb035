"""Files as other programs write them, from the folder to the answer; what each means alone is in tests/streams."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.spark.folders import HEADER

from towpath.api.running import start

pytestmark = pytest.mark.spark

STREAMS = """
  orders:
    source:
      type: files
      path: ./orders
      glob: "*.csv"
      format: csv
      delimiter: ";"
      nulls: [NA]
      time_format: "%d.%m.%Y %H:%M:%S"
    schema: {id: bigint, amount: double, at: timestamp}
    time: at
    idle_after: "0"
  payments:
    source: {type: files, path: ./payments, format: json, time_format: epoch ms}
    schema: {id: bigint, amount: double, at: timestamp}
    time: at
    idle_after: "0"
"""
QUERIES = {
    "unpaid": "SELECT id FROM orders WHERE amount IS NULL",
    "sums": "SELECT sum(amount) AS total, count(*) AS n FROM orders [RANGE 1 MINUTE]",
    "paid": "SELECT o.id FROM orders [RANGE 1 MINUTE] AS o, payments [RANGE 1 MINUTE] AS p "
    "WHERE o.id = p.id AND p.amount >= o.amount",
}
JANUARY_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z


def test_every_query_has_what_was_meant(tmp_path: Path) -> None:
    for folder in ("queries", "orders", "payments"):
        (tmp_path / folder).mkdir()
    orders = "id;amount;at\n1;10.5;01.01.2026 00:00:01\n2;NA;01.01.2026 00:00:02\n3;7;01.01.2026 00:00:03\n"
    (tmp_path / "orders" / "a.csv").write_text(orders)
    (tmp_path / "orders" / "readme.txt").write_text("not an order")
    payments = [{"id": 1, "amount": 10, "at": JANUARY_MS + 2000}, {"id": 3, "amount": 7, "at": JANUARY_MS + 4000}]
    (tmp_path / "payments" / "a.json").write_text("\n".join(map(json.dumps, payments)))
    job = tmp_path / "job.yaml"
    job.write_text(f"{HEADER}{STREAMS}\nqueries: {json.dumps(QUERIES)}\n")
    with start(job) as running:
        running.drain()
        assert running.results("unpaid")["id"].to_pylist() == [2]
        assert [(row["total"], row["n"]) for row in running.results("sums").to_pylist()] == [(17.5, 3)]
        assert running.results("paid")["id"].to_pylist() == [3]
        assert running.rejected() == []
