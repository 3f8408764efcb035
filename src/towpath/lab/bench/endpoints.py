"""Local Spark Connect endpoints for a benchmark, and the comparison of what ran on them with DuckDB."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from towpath.api.running import Towpath
from towpath.config.nodes import ConnectNode, NodeDef
from towpath.control.decide.requests import Request
from towpath.control.journal.answers import QueryVersion
from towpath.job import Job
from towpath.lab.bench.shared import job
from towpath.lab.bench.steps import Say
from towpath.lab.bench.workloads import streams
from towpath.spark import server
from towpath.spark.server import Server
from towpath.verify import Checked, Oracle

REPORT_EVERY = 50  # queries


@dataclass(frozen=True)
class EndpointSize:
    """Of one endpoint. One core each: several share the two of a small machine."""

    cores: int = 1
    memory: str = "3g"


@contextmanager
def endpoints(count: int, size: EndpointSize, say: Say) -> Iterator[dict[str, Server]]:
    names = [f"bench-{os.getpid()}-{n + 1}" for n in range(count)]
    say(f"starting {count} endpoints")
    with server.temporary(names, size.cores, size.memory) as found:
        yield found


def node_at(found: Server) -> ConnectNode:
    return ConnectNode.model_validate({"type": "connect", "address": found.address, "cores": found.cores})


def job_on(servers: Mapping[str, Server], folder: Path, data: Path, trigger_ms: int) -> Job:
    """A job over the streams of a folder, whose nodes are the endpoints."""
    nodes: dict[str, NodeDef] = {name: node_at(found) for name, found in servers.items()}
    return replace(job(folder, data, cores=1, trigger_ms=trigger_ms), nodes=nodes)


@dataclass(frozen=True)
class Faults:
    """Rows of all queries that the batch has and that never came, and those that came and the batch does not have."""

    lost: int
    doubled: int
    wrong: tuple[str, ...]  # the queries


def compare(running: Towpath, requests: Sequence[Request], data: Path, say: Say) -> Faults:
    """Every query with the same SQL, evaluated once over everything that came."""
    checks: list[Checked] = []
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute(f"CREATE TABLE everything AS SELECT * FROM read_parquet('{data / '*.parquet'}')")
        for name, definition in streams(data).items():
            columns = ", ".join(f'"{c.name}"' for c in definition.stream.columns)
            where = "" if name == "trades" else f"WHERE stream = {name.removeprefix('s')}"
            database.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM everything {where}")
        oracle = Oracle(running.job.catalog, lambda _: database)
        for n, request in enumerate(requests):
            if n % REPORT_EVERY == 0:
                say(f"comparing with DuckDB: {n} of {len(requests)} queries")
            name = request.query.name
            asked = QueryVersion(request.query.sql, running.engine.answers.validity(name))
            checks.append(oracle.check(name, [asked], running.results(name)))
    wrong = {checked.name: checked.difference for checked in checks if checked.difference is not None}
    return Faults(sum(d.missing for d in wrong.values()), sum(d.extra for d in wrong.values()), tuple(wrong))
