"""A month in seconds: what is kept is bounded by what stands and what can be read."""

from __future__ import annotations

import json

from click.testing import CliRunner

from towpath.cli import main
from towpath.lab.bench.month import QUICK


def test_what_is_kept_does_not_grow_with_what_has_gone() -> None:
    answer = CliRunner().invoke(main, ["bench", "month", "--quick", "--json"])
    report = json.loads(answer.stdout)
    per_hour = round(QUICK.queries * QUICK.replaced)
    assert report["replaced"] == QUICK.hours * per_hour
    most = QUICK.queries + (QUICK.retention_hours + QUICK.tidy_hours + 1) * per_hour + 2 * QUICK.samples
    for size in report["size"].values():
        assert size["rows"]["carriers"] == 2
        assert size["rows"]["queries"] == size["rows"]["parts"] <= most < report["replaced"]
        assert size["rows"]["fragments"] <= most
        assert size["history"] <= 3 * most
    first, end = report["size"]["retention"], report["size"]["end"]
    assert end["files"] <= first["files"] + 2 * 34, "raw micro-batches that wait to be merged"
    assert end["bytes"]["results"] <= 2 * first["bytes"]["results"]
