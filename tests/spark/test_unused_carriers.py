"""A carrier that nobody needs stops on real Spark, and goes on from its checkpoint when somebody does."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.seconds import arrive, stream, wrong

from towpath.api.running import Towpath, start
from towpath.control.decide import unused_carriers as resting
from towpath.job import Job, QueryDef, ResultsDef
from towpath.lab.testing.running import ONE

pytestmark = [pytest.mark.spark, pytest.mark.live]

PATIENCE_S = 60
SQL = {
    "filter": "SELECT k, v FROM s WHERE v > 300",
    "window": "SELECT k, count(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k",
}


def job(folder: Path) -> Job:
    queries = {name: QueryDef.model_validate({"sql": sql}) for name, sql in SQL.items()}
    return Job(folder / "store", 50, {"s": stream(folder)}, dict(ONE), queries, None, ResultsDef.model_validate({}))


def feed(running: Towpath, folder: Path, second: int) -> pa.Table:
    table = arrive(folder, second, rows=200)
    running.run(seconds=0.3)
    return table


def rests(running: Towpath) -> bool:
    controller = running.engine.controller
    return not any(controller.runs(carrier) for carrier in controller.state.carriers)


def test_queries_that_come_back_answer_for_what_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "AFTER_S", 0.5)
    with start(job(tmp_path)) as running:
        fed = [feed(running, tmp_path, second) for second in range(4)]
        running.engine.finishing.catch_up()
        for name in SQL:
            running.withdraw(name)
        end, second = time.monotonic() + PATIENCE_S, 4
        while not rests(running) and time.monotonic() < end:  # a window that is owed has to be closed first
            fed.append(feed(running, tmp_path, second))
            second += 1
        assert rests(running)
        fed += [feed(running, tmp_path, n) for n in range(second, second + 3)]
        for name, sql in SQL.items():
            running.submit(name, sql)
        fed += [feed(running, tmp_path, n) for n in range(second + 3, second + 12)]
        running.drain()
        assert wrong(running, SQL, pa.concat_tables(fed)) == []
