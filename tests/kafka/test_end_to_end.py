"""From topics through Spark into topics, with the broker dying in the middle: equal to the batch answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from towpath.api.running import Towpath, start
from towpath.arrow import arrow_schema
from towpath.job import load
from towpath.lab.testing.recording import Recording
from towpath.lab.testing.workload import DrawnQuery, Workload
from towpath.lang import parse
from towpath.results.render import json_texts
from towpath.spark import server
from towpath.spark.server import Server
from towpath.verify import answer, differences

from .broker import Broker
from .topics import consume, create, produce, wait_until_closed

pytestmark = [pytest.mark.spark, pytest.mark.live]

QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
BEGINNING = 1_767_225_600
PHASES, ROWS, SECONDS = 3, 200, 20  # rows of a stream and seconds of event time in each phase
DELAY_S, DISORDER_S = 2.0, 1.5
STEP_S = 0.8 * (DELAY_S - DISORDER_S)

JOB = """
trigger: 100 ms
nodes:
  far: {{type: connect, address: "{node}", cores: 2}}
streams:
  orders: &stream
    source: &source {{type: kafka, servers: "{kafka}", topic: orders}}
    schema: {{k: bigint, x: double, tag: string, at: timestamp}}
    time: at
    delay: {delay} seconds
    idle_after: 0
  trades:
    <<: *stream
    source: {{<<: *source, topic: trades}}
  news:
    <<: *stream
    source: {{<<: *source, topic: news, start: latest}}
  "pump{{1..2}}":
    <<: *stream
    source: {{<<: *source, topic: pumps, key: "pump{{n}}"}}
queries:
{queries}
"""
QUERY = """
  {name}:
    sql: {sql}
    sink: {{type: kafka, servers: "{kafka}", topic: results-{name}}}
"""
QUERIES = {
    "high": "SELECT k, x, tag, at FROM orders WHERE x > 5 AND tag = 'b'",
    "means": "SELECT tag, avg(x) AS x, count(*) AS n FROM trades [RANGE 6 SECONDS SLIDE 2 SECONDS] GROUP BY tag",
    "pairs": "SELECT o.k, o.x AS bid, t.x AS ask FROM orders [RANGE 2 SECONDS] AS o, trades [RANGE 2 SECONDS] AS t "
    "WHERE o.k = t.k AND o.x < t.x",
    "heard": "SELECT k, x FROM news WHERE x > 7",
    "first": "SELECT k, x FROM pump1 WHERE x > 8",
    "second": "SELECT k, x FROM pump2 WHERE x > 8",
}
BAD = {
    "no JSON": "not JSON",
    '{"k": 1}': "it has no event time in the column at",
    '{"k": 1, "at": "soon"}': 'column at: no TIMESTAMPTZ: "soon"',
    '{"k": "one", "at": "2026-01-01T00:00:00Z"}': 'column k: no BIGINT: "one"',
}


@pytest.fixture(scope="module")
def endpoint(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        connector = {"spark.jars": ",".join(map(str, sorted((jars / "connector").glob("*.jar"))))}
        yield server.start("kafka", 2, "2g", None, QUICK_START | connector, lambda: None)
        server.stop("kafka")


def write_job(folder: Path, node: str, kafka: str, queries: dict[str, str]) -> Path:
    texts = [QUERY.format(name=name, sql=sql, kafka=kafka) for name, sql in queries.items()]
    job = folder / "job.yaml"
    job.write_text(JOB.format(delay=DELAY_S, node=node, kafka=kafka, queries="".join(texts)))
    return job


def random_chunk(rng: Random, phase: int) -> list[dict[str, Any]]:
    """Rows of a phase as they are sent: out of order by less than the allowed delay."""
    sent = sorted(rng.uniform(0, SECONDS) for _ in range(ROWS))
    begin = BEGINNING + phase * SECONDS
    times = [begin + max(0.0, second - rng.uniform(0, DISORDER_S)) for second in sent]
    return [
        {"k": rng.randrange(6), "x": rng.randrange(100) / 10, "tag": rng.choice("abc"), "at": round(t, 3)}
        for t in times
    ]


def recorded(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([row | {"at": round(row["at"] * 1_000_000)} for row in rows], schema)


def message(row: dict[str, Any]) -> dict[str, Any]:
    micros = round(row["at"] * 1_000_000)
    return row | {"at": pa.scalar(micros, pa.timestamp("us", "UTC")).as_py().isoformat()}


def test_topics_to_topics_over_a_broker_that_dies(broker: Broker, endpoint: Server, tmp_path: Path) -> None:
    create(broker.address, "orders", "trades", "news", "pumps", *(f"results-{name}" for name in QUERIES))
    job = load(write_job(tmp_path, endpoint.address, broker.address, QUERIES))
    rng = Random(1)
    chunks = [{name: random_chunk(rng, phase) for name in job.catalog} for phase in range(PHASES)]
    schema = arrow_schema({c.name: c.type for c in job.catalog["orders"].columns})
    recording = Recording(job.catalog, tuple({n: recorded(r, schema) for n, r in chunk.items()} for chunk in chunks))
    workload = Workload(recording, {name: DrawnQuery(sql) for name, sql in QUERIES.items()})

    produce(broker.address, "news", [(None, message(row)) for row in random_chunk(rng, 0)])  # before the job began
    with start(job) as running:
        send(broker, chunks[0])
        produce(broker.address, "orders", [(None, text) for text in BAD])
        produce(broker.address, "pumps", [("pump3", "of no stream")])
        settle(running)
        send(broker, chunks[1])
        with running.housekeeper._busy:
            wait_until_closed(broker.address, *(f"results-{name}" for name in QUERIES))
            broker.kill()
        running.run(seconds=2)
        broker.start()
        send(broker, chunks[2])
        settle(running)
        running.drain()

        for name, sql in QUERIES.items():
            expected = answer(
                workload.database(), parse(sql, job.catalog, name), job.catalog, running.engine.answers.validity(name)
            )
            actual = running.results(name)
            assert actual.num_rows > 0
            assert differences(expected, actual) is None, name
            texts = [json_texts(actual), json_texts(pa.Table.from_pylist(consume(broker.address, f"results-{name}")))]
            assert sorted(texts[1]) == sorted(texts[0])
        assert sum(sum(c.late_rows.values()) for c in running.engine.carriers) == 0
        # Two carriers have read them, and the broker died in between.
        bad = {(r.topic, r.reason, r.text) for r in running.rejected()}
        assert bad == {("orders", reason, text) for text, reason in BAD.items()}
        assert len(running.rejected()) == len(BAD)
        assert len({(r.partition, r.offset) for r in running.rejected("orders")}) == len(BAD)


def send(broker: Broker, chunk: dict[str, list[dict[str, Any]]]) -> None:
    for name in ("orders", "trades", "news"):
        send_in_step(broker, name, [(str(row["k"]), row) for row in chunk[name]])
    pumps = [(name, row) for name in ("pump1", "pump2") for row in chunk[name]]
    pumps += [("pump3", row) for row in chunk["pump1"]]
    send_in_step(broker, "pumps", sorted(pumps, key=lambda pump: pump[1]["at"]))


def send_in_step(broker: Broker, topic: str, rows: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """No partition runs ahead of another by more than STEP_S, however slow the broker is.

    A micro-batch that finds a whole phase of one partition and nothing of another would rightly take the rest for late
    when they come.
    """
    steps: list[list[tuple[str, dict[str, Any]]]] = []
    newest = begin = -math.inf
    for key, row in rows:
        newest = max(newest, row["at"])
        if newest > begin + STEP_S:
            steps.append([])
            begin = newest
        steps[-1].append((key, message(row)))
    produce(broker.address, topic, *steps)


def settle(running: Towpath) -> None:
    running.engine.finishing.settle()
    running.poll()
