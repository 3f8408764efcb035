"""Makes Spark start faster on this machine: an archive of the classes that a job needs, taken from a small one."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from towpath.api.running import start
from towpath.errors import RuntimeFailure
from towpath.plan import CarrierKinds
from towpath.spark import class_archive, server
from towpath.spark.server import Server
from towpath.store import durable

__all__ = ["prepare"]

BEGINNING, STEP, ROWS = datetime(2026, 1, 1), timedelta(seconds=0.5), 200
# Writing the archive takes ten seconds of a core; on a machine that is busy, several times that.
PATIENCE_S = 180.0
# Something of every kind: what they load is most of what any job does.
QUERIES = {
    "filter": "SELECT k, x * 2 AS y, upper(s) AS u FROM a WHERE x > 3 AND s LIKE '%b%'",
    "window": "SELECT k, count(*) AS n, avg(x) AS m FROM a [RANGE 10 SECONDS] GROUP BY k HAVING count(*) > 1",
    "join": "SELECT a.k, b.s FROM a [RANGE 5 SECONDS] AS a, b [RANGE 5 SECONDS] AS b WHERE a.k = b.k AND b.x > 2",
    "counted": "SELECT a.k, count(*) AS n FROM a [RANGE 5 SECONDS] AS a, b [RANGE 5 SECONDS] AS b "
    "WHERE a.k = b.k GROUP BY a.k",
}


def prepare(say: Callable[[str], None] = lambda text: None) -> Path:
    """Makes the archive, or makes it anew, and returns its file. Every Spark that is started later uses it."""
    archive = class_archive.path()
    with tempfile.TemporaryDirectory(prefix="towpath-prepare-") as folder:
        made = Path(folder) / "spark.jsa"
        with _server(Path(folder).name, made) as node:
            for kind in (CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL):
                say(f"running a small job with {kind.value} carriers")
                with start(_job(Path(folder), node, kind)) as job:
                    job.drain()
            say("writing the archive")
        if not made.exists():
            raise RuntimeFailure("Java wrote no archive of classes; Spark starts as before. Is there room in /tmp?")
        with durable.writing(archive, lasting=False, alone=False) as scratch:
            shutil.move(made, scratch)
    return archive


@contextmanager
def _server(name: str, archive: Path) -> Iterator[Server]:
    """One that writes the archive when it ends; its folder goes with it."""
    java = {"spark.driver.extraJavaOptions": class_archive.writing(archive)}
    node = server.start(name, 2, "1g", None, java, lambda: None)
    try:
        yield node
    finally:
        server.stop(name, patience_s=PATIENCE_S)
        shutil.rmtree(server.folder() / name, ignore_errors=True)


def _job(folder: Path, node: Server, kind: CarrierKinds) -> Path:
    streams: dict[str, Any] = {}
    rows = [{"t": str(BEGINNING + n * STEP), "k": n % 7, "x": n % 11, "s": f"b{n}"} for n in range(ROWS)]
    for name in ("a", "b"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        schema = {"t": "timestamp", "k": "int", "x": "double", "s": "string"}
        source = {"type": "files", "path": f"./{name}", "format": "json"}
        streams[name] = {"source": source, "schema": schema, "time": "t", "delay": "0 seconds"}
    path = folder / f"{kind.value}.yaml"
    nodes = {"here": {"type": "connect", "address": node.address, "cores": node.cores}}
    path.write_text(
        json.dumps(
            {"trigger": "200 ms", "carriers": kind.value, "nodes": nodes, "streams": streams, "queries": QUERIES}
        )
    )
    return path
