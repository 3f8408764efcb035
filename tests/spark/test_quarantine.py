"""A query that makes its carrier fail on real Spark, among others: it is set aside, and they answer as DuckDB does."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from sqlglot import exp
from tests.spark.seconds import arrive, stream, wrong

from towpath.api.running import Towpath, start
from towpath.config.nodes import ConnectNode, NodeDef
from towpath.control.journal.journal import Journal
from towpath.control.state.history import EventKind
from towpath.job import Job, QueryDef, ResultsDef
from towpath.lab.testing.running import ONE
from towpath.plan import CarrierKinds
from towpath.spark import server
from towpath.spark.expressions import RULES, SparkCompiler
from towpath.store.layout import Store

pytestmark = [pytest.mark.spark, pytest.mark.live]

PATIENCE_S = 300
HEALTHY = {
    **{f"filter{n}": f"SELECT k, v FROM s WHERE v > {n * 60}" for n in range(8)},
    **{f"computed{n}": f"SELECT k, v + {n} AS more FROM s WHERE k = {n}" for n in range(4)},
    **{f"window{n}": f"SELECT k, count(*) AS n FROM s [RANGE 2 SECONDS] WHERE v > {n} GROUP BY k" for n in range(8)},
}
BAD = {
    "bad": "SELECT k, v FROM s WHERE sqrt(v) >= 0",
    "bad_window": "SELECT k, count(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k HAVING sqrt(max(v)) >= 0",
}
FEW, MANY = 20, 200  # rows of a second; with few no value is above 900


def failing(compile_: SparkCompiler, node: exp.Expression) -> Column:
    value = compile_(node.this)
    return F.when(value > 900, F.raise_error(F.lit("a fault on purpose")).cast("double")).otherwise(F.sqrt(value))


# What Spark's Python workers import before anything else: rules of the vectorised engine that fail, or end the process.
IN_WORKERS = """
import os, sys
from importlib.machinery import PathFinder

def fault(values):
    if (values > 900).any():
        raise ValueError("a fault on purpose")
    return values.sqrt()

def crash(values):
    if (values > 900).any():
        os._exit(1)
    return values.cast(float)

class Finder:
    def find_spec(name, path, target=None):
        if name != "towpath.vector.expressions":
            return None
        spec = PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            from sqlglot import exp
            load(module)
            for node, rule in ((exp.Sqrt, fault), (exp.Exp, crash)):
                module.RULES[node] = lambda compile_, call, rule=rule: compile_(call.this).map_batches(rule)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder)
"""


def job(
    folder: Path,
    sqls: Mapping[str, str],
    nodes: Mapping[str, NodeDef] = ONE,
    kinds: CarrierKinds = CarrierKinds.COMPILED,
) -> Job:
    queries = {name: QueryDef.model_validate({"sql": sql}) for name, sql in sqls.items()}
    where = (folder / "store", 50, {"s": stream(folder)}, dict(nodes), queries, None, ResultsDef.model_validate({}))
    return Job(*where, carriers=kinds)


def wait_until_aside(running: Towpath, *names: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while set(running.engine.controller.queries.aside) != set(names):
        assert time.monotonic() < end, "nobody was set aside"
        running.run(seconds=0.2)


def test_one_query_fails_and_twenty_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, exp.Sqrt, failing)
    made = job(tmp_path, HEALTHY | BAD)
    with start(made) as running:
        fed = [arrive(tmp_path, second, FEW) for second in range(3)]
        running.engine.finishing.catch_up()
        fed += [arrive(tmp_path, second, MANY) for second in range(3, 6)]
        wait_until_aside(running, *BAD)
        fed.append(arrive(tmp_path, 6, MANY))
        running.engine.finishing.catch_up()
        aside = running.engine.controller.queries.aside.get("bad")
        assert aside is not None and aside.failed is not None and "a fault on purpose" in aside.failed
        assert running.results("bad").num_rows, "what it had answered stays"
        # What it has answered is right for the times that it still answers for.
        assert running.engine.answers.validity("bad")[0].until_us is not None
    with start(made) as running:
        assert set(running.engine.controller.queries.running) == set(HEALTHY)
        fed += [arrive(tmp_path, second, MANY) for second in range(7, 10)]
        running.drain()
        assert wrong(running, HEALTHY, pa.concat_tables(fed)) == []
        assert wrong(running, BAD, pa.concat_tables(fed)) == [], "for the times that they answered for"
        assert not running.engine.guard.troubles
    journal = Journal(Store(made.store).journal, read_only=True)
    assert {e.query for e in journal.history() if e.kind is EventKind.SET_ASIDE} == set(BAD)
    journal.close()
    assert not list((made.store / "trials").glob("*")), "copies are thrown away"


def test_the_same_on_an_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, exp.Sqrt, failing)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    healthy = {f"filter{n}": HEALTHY[f"filter{n}"] for n in range(3)}
    with server.temporary(["trials"], 2, "2g") as started:
        address = started["trials"].address
        node = ConnectNode.model_validate({"type": "connect", "address": address, "cores": 2})
        with start(job(tmp_path, healthy | {"bad": BAD["bad"]}, {"far": node})) as running:
            fed = [arrive(tmp_path, 0, FEW)]
            running.engine.finishing.catch_up()
            fed.append(arrive(tmp_path, 1, MANY))
            wait_until_aside(running, "bad")
            running.drain()
            assert wrong(running, healthy, pa.concat_tables(fed)) == []


def test_the_same_in_universal_carriers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a query that ends the process which calculates it, as the system does when memory is short."""
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "sitecustomize.py").write_text(IN_WORKERS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "workers"), prepend=os.pathsep)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    bad = BAD | {"crash": "SELECT k, v FROM s WHERE exp(v) >= 0"}
    with server.temporary(["trials"], 2, "2g") as started:
        node = ConnectNode.model_validate({"type": "connect", "address": started["trials"].address, "cores": 2})
        made = job(tmp_path, HEALTHY | bad, {"far": node}, CarrierKinds.UNIVERSAL)
        with start(made) as running:
            assert {c.template.family.universal for c in running.engine.controller.state.carriers.values()} == {True}
            fed = [arrive(tmp_path, second, FEW) for second in range(3)]
            running.engine.finishing.catch_up()
            fed += [arrive(tmp_path, second, MANY) for second in range(3, 6)]
            wait_until_aside(running, *bad)
            fed.append(arrive(tmp_path, 6, MANY))
            running.drain()
            reasons = {name: query.failed or "" for name, query in running.engine.controller.queries.aside.items()}
            assert "a fault on purpose" in reasons["bad"] and "a fault on purpose" in reasons["bad_window"]
            assert wrong(running, HEALTHY, pa.concat_tables(fed)) == []
            assert wrong(running, bad, pa.concat_tables(fed)) == [], "for the times that they answered for"
