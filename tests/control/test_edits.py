"""Which queries run after the job file was edited."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from towpath.api.checking import parse_all
from towpath.config.network import NetworkDef
from towpath.config.nodes import NODES
from towpath.config.settings import Settings
from towpath.config.steering import ControlDef
from towpath.control.decide import edits
from towpath.control.decide.controller import Controller
from towpath.control.decide.requests import Request, planned, request_of, take_in
from towpath.control.state.records import BEGINNING_US, QueryRecord, State
from towpath.errors import JobError
from towpath.job import Job, JobText, QueryDef, ResultsDef, load
from towpath.lang import parse
from towpath.results.sinks import SINKS
from towpath.streams.definition import StreamText
from towpath.streams.sources import SOURCES
from towpath.streams.versions import StreamVersion
from towpath.tables.definition import TABLE_SOURCES, TableText

from .world import SECOND, batch_done

GUIDE = Path(__file__).parents[2] / "docs" / "job-file.md"
JOB = """
streams:
  a: {source: {type: files, path: ./a, format: parquet}, schema: {k: bigint, at: timestamp}, time: at}
  b: {source: {type: files, path: ./b, format: csv}, schema: {k: bigint, x: double, at: timestamp}, time: at}
"""
QUERIES = """
queries:
  qa: SELECT k FROM a
  qb: SELECT k FROM b
  cut: {sql: "SELECT count(*) AS n FROM (SELECT l.k FROM b [RANGE 1 MINUTE] AS l, b [RANGE 1 MINUTE] AS r WHERE l.k = r.k) [RANGE 1 MINUTE] AS j", fragments: one_per_operator}
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b", "elsewhere"):
        (tmp_path / name).mkdir()
    return tmp_path


def written(folder: Path, text: str) -> Job:
    (folder / "job.yaml").write_text(text)
    return load(folder / "job.yaml")


class Runs:
    """Starts a job as `start` does, again and again, up to where Spark would come in."""

    def __init__(self) -> None:
        self.state = State()
        self.before: list[StreamVersion] = []
        self.said = edits.DeclaredJob()
        self.heard = False  # all that carriers did
        self.ignored: list[str] = []
        self.elsewhere: list[str] = []
        self.controller = Controller(self.state, {})
        self.job: Job | None = None

    def start(self, job: Job) -> list[str]:
        """Returns which queries were taken in."""
        versions = edits.versions(job, self.before, self.state)
        self.job = job = replace(job, streams=versions.streams)
        of_job = [request_of(query, job.queries[name], job.fragments) for name, query in parse_all(job).items()]
        asked = edits.requests(job, of_job, self.state)
        self.ignored = [str(problem) for problem in edits.ignored(job, self.said, self.state)]
        self.elsewhere = edits.elsewhere(job, self.said)
        self.said = edits.said(job, self.said, self.state)
        self.controller = Controller(self.state, job.catalog, list(job.nodes))
        fresh = planned(asked, self.controller, job.catalog)
        opening = edits.Opening("started", job.catalog, asked, job.queries, self.elsewhere, lambda carrier: self.heard)
        opening(self.controller)
        self.before = list(versions.all)
        return [wanted.request.query.name for wanted in fresh]

    def submit(self, *submitted: tuple[str, str]) -> None:
        assert self.job is not None
        asked = [Request(parse(sql, self.job.catalog, name)) for name, sql in submitted]
        take_in(planned(asked, self.controller, self.job.catalog), self.controller)

    @property
    def running(self) -> dict[str, QueryRecord]:
        return {query.name: query for query in self.state.queries.values() if query.running}


def test_what_is_unchanged_goes_on_and_what_reads_another_stream_is_replaced(folder: Path) -> None:
    runs = Runs()
    assert runs.start(written(folder, JOB + QUERIES)) == ["qa", "qb", "cut"]
    runs.submit(("mine", "SELECT k + 1 AS k FROM a"))
    assert runs.start(written(folder, JOB + QUERIES)) == []
    assert runs.start(written(folder, (JOB + QUERIES).replace("./a", "./elsewhere"))) == ["qa", "mine"]
    text = (JOB + QUERIES).replace("x: double", "x: string")
    assert runs.start(written(folder, text)) == ["qa", "qb", "cut", "mine"]


def test_what_reads_streams_that_are_as_they_were_goes_on_without_its_text(folder: Path) -> None:
    runs = Runs()
    runs.start(written(folder, JOB))
    runs.submit(("mine", "SELECT k + 1 AS k FROM a"))
    runs.running["mine"].sql = "no SQL"
    assert runs.start(written(folder, JOB)) == []
    with pytest.raises(JobError, match="cannot go on with this job file"):
        runs.start(written(folder, JOB.replace("./a", "./elsewhere")))


def test_what_was_submitted_stays_whatever_the_job_file_says(folder: Path) -> None:
    runs = Runs()
    runs.start(written(folder, JOB + QUERIES))
    runs.submit(("qa", "SELECT k FROM a WHERE k = 7"))
    assert runs.start(written(folder, JOB + QUERIES.replace("FROM a", "FROM a WHERE k = 8"))) == []
    assert runs.running["qa"].sql == "SELECT k FROM a WHERE k = 7"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JOB.replace("  a:", "  z:"), "query mine: there is no stream a"),
        (JOB.replace("{k: bigint, at", "{other: bigint, at"), "query mine: .*k is not a column"),
    ],
)
def test_what_was_submitted_and_has_lost_its_stream_is_reported_before_anything_starts(
    folder: Path, text: str, said: str
) -> None:
    runs = Runs()
    runs.start(written(folder, JOB))
    runs.submit(("mine", "SELECT k FROM a"), ("yours", "SELECT k FROM b"))
    queries = dict(runs.state.queries)
    with pytest.raises(JobError, match=said) as caught:
        runs.start(written(folder, text))
    assert "yours" not in str(caught.value)
    assert "towpath withdraw mine" in str(caught.value)
    assert runs.state.queries == queries


def test_who_leaves_with_an_edit_ends_where_the_last_run_has_left_it(folder: Path) -> None:
    """Not where the stream that the job does not have any more has come to meanwhile."""
    runs = Runs()
    runs.start(written(folder, JOB + QUERIES))
    before = runs.running["qa"].id
    (part,) = runs.state.parts_of(before)
    runs.controller.handle(batch_done(runs.state.fragments[part.fragment].carrier, 0, 1, [12 * SECOND], first=True))
    runs.heard = True
    runs.start(written(folder, (JOB + QUERIES).replace("./a", "./elsewhere")))
    (old,), (new,) = runs.state.parts_of(before), runs.state.parts_of(runs.running["qa"].id)
    assert (old.ceded_us, old.deciding) == (12 * SECOND + 1, None)
    assert (new.from_us, new.settled) == (12 * SECOND + 1, True)
    runs.start(written(folder, JOB.replace("./a", "./elsewhere")))
    (new,) = runs.state.parts_of(new.query)
    assert (new.until_us, new.done) == (BEGINNING_US, True), "nothing was read for it"


# --- every key -------------------------------------------------------------------------------------------------------

REPLACED = "is replaced"  # the queries concerned are another version from now on
HOLDS = "holds from now on"
SAID = "is said to change nothing"
ELSEWHERE = "another node"  # what it ran goes on in a new epoch
OTHER_JOB = "another job"
NO_OTHER = "has no other value"

SCHEMA = {"k": "bigint", "s": "string", "at": "timestamp", "made": "timestamp"}
DESCRIBED = {"schema": SCHEMA, "time": "at", "delay": "1 second", "idle_after": "1 second", "close_after": "1 second"}
PAIRS = "(SELECT l.k FROM files [RANGE 1 SECOND] AS l, files [RANGE 1 SECOND] AS r WHERE l.k = r.k)"
BASE: dict[str, Any] = {
    "store": "./one.store",
    "trigger": "1 second",
    "streams": {
        "files": {"source": {"type": "files", "path": "./a", "format": "csv"}, **DESCRIBED},
        "topic": {"source": {"type": "kafka", "servers": "k:1", "topic": "t"}, **DESCRIBED},
        "clock": {"source": {"type": "rate", "rate": 1}},
        "bids": {"source": {"type": "auction", "table": "bids", "rate": 10}},
        "cars": {"source": {"type": "traffic", "sensors": 2, "sensor": 1, "rate": 10}},
    },
    "tables": {"side": {"source": {"type": "file", "path": "./a.csv", "format": "csv"}, "schema": {"k": "bigint"}}},
    "nodes": {
        "local": {"type": "embedded", "cores": 2},
        "left": {"type": "connect", "address": "sc://left:15002", "cores": 2},
    },
    "queries": {
        **{name: {"sql": f"SELECT * FROM {name}"} for name in ("files", "topic", "clock", "bids", "cars")},
        "looks": {"sql": "SELECT f.s FROM files AS f JOIN side AS t ON f.k = t.k"},
        "counts": {"sql": f"SELECT count(*) AS n FROM {PAIRS} [RANGE 1 SECOND] AS j"},
        "parquet": {"sql": "SELECT k FROM files WHERE k > 1", "sink": {"type": "parquet", "path": "./out"}},
        "kafka": {"sql": "SELECT k FROM files", "sink": {"type": "kafka", "servers": "k:1", "topic": "out"}},
        "hook": {"sql": "SELECT k FROM files WHERE k > 2", "sink": {"type": "webhook", "url": "https://h/x"}},
    },
    "results": {"retention": "1 day"},
    "control": {"every": "1 second"},
}
GENERATOR = {"rate": 20, "seed": 1, "rows": 5, "start": "2020-01-01", "disorder": "1 second"}

# By section and key: what becomes of an edit, and one, as the place in the file and what is there afterwards.
EDITS: dict[tuple[str, str], tuple[str, tuple[str, Any]]] = {
    ("", "store"): (OTHER_JOB, ("store", "./two.store")),
    ("", "trigger"): (HOLDS, ("trigger", "2 seconds")),
    ("", "streams"): (REPLACED, ("streams.files.time", "made")),
    ("", "tables"): (REPLACED, ("tables.side.schema", {"k": "int"})),
    ("", "nodes"): (HOLDS, ("nodes.right", {"type": "embedded", "cores": 1})),
    ("", "views"): (HOLDS, ("views", {"some": "SELECT k FROM files"})),
    ("", "queries"): (REPLACED, ("queries.files.sql", "SELECT k FROM files")),
    ("", "queries_folder"): (HOLDS, ("queries_folder", "./b")),
    ("", "fragments"): (REPLACED, ("fragments", "one_per_operator")),
    ("", "carriers"): (HOLDS, ("carriers", "universal")),
    ("", "results"): (HOLDS, ("results", {})),
    ("", "network"): (HOLDS, ("network", {"distances": {"local": {"left": "20 ms"}}})),
    ("", "control"): (HOLDS, ("control", None)),
    ("stream", "source"): (REPLACED, ("streams.files.source.path", "./b")),
    ("stream", "schema"): (REPLACED, ("streams.files.schema", {**SCHEMA, "more": "double"})),
    ("stream", "time"): (REPLACED, ("streams.files.time", "made")),
    ("stream", "node"): (HOLDS, ("streams.files.node", "left")),
    ("stream", "delay"): (HOLDS, ("streams.files.delay", "2 seconds")),
    ("stream", "idle_after"): (HOLDS, ("streams.files.idle_after", "2 seconds")),
    ("stream", "close_after"): (HOLDS, ("streams.files.close_after", "2 seconds")),
    ("table", "source"): (HOLDS, ("tables.side.source.path", "./b.csv")),
    ("table", "schema"): (REPLACED, ("tables.side.schema", {"k": "bigint", "more": "double"})),
    ("file", "type"): (NO_OTHER, ("tables.side.source.type", "file")),
    ("file", "path"): (HOLDS, ("tables.side.source.path", "./b.csv")),
    ("file", "format"): (HOLDS, ("tables.side.source.format", "parquet")),
    ("file", "header"): (HOLDS, ("tables.side.source.header", False)),
    ("file", "fields"): (HOLDS, ("tables.side.source.fields", {"k": ["other"]})),
    ("files", "type"): (REPLACED, ("streams.files.source", {"type": "kafka", "servers": "k:1", "topic": "f"})),
    ("files", "path"): (REPLACED, ("streams.files.source.path", "./b")),
    ("files", "format"): (REPLACED, ("streams.files.source.format", "json")),
    ("files", "delimiter"): (REPLACED, ("streams.files.source.delimiter", ";")),
    ("files", "nulls"): (REPLACED, ("streams.files.source.nulls", ["NA"])),
    ("files", "time_format"): (REPLACED, ("streams.files.source.time_format", "%d.%m.%Y %H:%M")),
    ("files", "glob"): (REPLACED, ("streams.files.source.glob", "*.csv")),
    ("files", "fields"): (REPLACED, ("streams.files.source.fields", {"k": "other"})),
    ("kafka", "fields"): (REPLACED, ("streams.topic.source.fields", {"k": "other"})),
    ("kafka", "time_format"): (REPLACED, ("streams.topic.source.time_format", "epoch ms")),
    ("files", "header"): (REPLACED, ("streams.files.source.header", False)),
    ("files", "where"): (REPLACED, ("streams.files.source.where", {"k": 1})),
    ("kafka", "type"): (REPLACED, ("streams.topic.source", {"type": "files", "path": "./b", "format": "json"})),
    ("kafka", "servers"): (HOLDS, ("streams.topic.source.servers", "k:2")),
    ("kafka", "topic"): (REPLACED, ("streams.topic.source.topic", "u")),
    ("kafka", "format"): (NO_OTHER, ("streams.topic.source.format", "json")),
    ("kafka", "start"): (REPLACED, ("streams.topic.source.start", "latest")),
    ("kafka", "where"): (REPLACED, ("streams.topic.source.where", {"k": 1})),
    ("kafka", "key"): (REPLACED, ("streams.topic.source.key", "one")),
    ("kafka", "options"): (HOLDS, ("streams.topic.source.options", {"kafka.security.protocol": "SSL"})),
    ("rate", "type"): (REPLACED, ("streams.clock.source", {"type": "auction", "table": "bids", "rate": 1})),
    ("rate", "rate"): (REPLACED, ("streams.clock.source.rate", 2)),
    **{("auction", key): (REPLACED, (f"streams.bids.source.{key}", value)) for key, value in GENERATOR.items()},
    ("auction", "type"): (REPLACED, ("streams.bids.source", {"type": "rate", "rate": 1})),
    ("auction", "table"): (REPLACED, ("streams.bids.source.table", "persons")),
    **{("traffic", key): (REPLACED, (f"streams.cars.source.{key}", value)) for key, value in GENERATOR.items()},
    ("traffic", "type"): (REPLACED, ("streams.cars.source", {"type": "rate", "rate": 1})),
    ("traffic", "sensors"): (REPLACED, ("streams.cars.source.sensors", 3)),
    ("traffic", "sensor"): (REPLACED, ("streams.cars.source.sensor", 2)),
    ("embedded", "type"): (ELSEWHERE, ("nodes.local", BASE["nodes"]["left"])),
    ("embedded", "cores"): (HOLDS, ("nodes.local.cores", 1)),
    ("embedded", "memory"): (HOLDS, ("nodes.local.memory", "2g")),
    ("embedded", "jars"): (HOLDS, ("nodes.local.jars", ["./job.yaml"])),
    ("embedded", "spark"): (HOLDS, ("nodes.local.spark", {"spark.ui.enabled": "true"})),
    ("embedded", "properties"): (HOLDS, ("nodes.local.properties", {"site": "here"})),
    ("connect", "type"): (ELSEWHERE, ("nodes.left", BASE["nodes"]["local"])),
    ("connect", "address"): (ELSEWHERE, ("nodes.left.address", "sc://right:15002")),
    ("connect", "token_file"): (HOLDS, ("nodes.left.token_file", "./job.yaml")),
    ("connect", "lost_after"): (HOLDS, ("nodes.left.lost_after", "1 minute")),
    ("connect", "cores"): (HOLDS, ("nodes.left.cores", 1)),
    ("connect", "spark"): (HOLDS, ("nodes.left.spark", {"spark.ui.enabled": "true"})),
    ("connect", "properties"): (HOLDS, ("nodes.left.properties", {"site": "there"})),
    ("query", "sql"): (REPLACED, ("queries.files.sql", "SELECT k FROM files")),
    ("query", "sink"): (HOLDS, ("queries.files.sink", {"type": "memory"})),
    ("query", "from"): (SAID, ("queries.files.from", "now")),
    ("query", "node"): (SAID, ("queries.files.node", "left")),
    ("query", "copies"): (REPLACED, ("queries.files.copies", 2)),
    ("query", "fragments"): (REPLACED, ("queries.counts.fragments", "one_per_operator")),
    ("sink parquet", "type"): (HOLDS, ("queries.parquet.sink", {"type": "console"})),
    ("sink parquet", "path"): (HOLDS, ("queries.parquet.sink.path", "./other")),
    ("sink kafka", "type"): (HOLDS, ("queries.kafka.sink", {"type": "console"})),
    ("sink kafka", "servers"): (HOLDS, ("queries.kafka.sink.servers", "k:2")),
    ("sink kafka", "topic"): (HOLDS, ("queries.kafka.sink.topic", "other")),
    ("sink kafka", "options"): (HOLDS, ("queries.kafka.sink.options", {"kafka.security.protocol": "SSL"})),
    ("sink webhook", "type"): (HOLDS, ("queries.hook.sink", {"type": "console"})),
    ("sink webhook", "url"): (HOLDS, ("queries.hook.sink.url", "https://h/other")),
    ("sink webhook", "headers"): (HOLDS, ("queries.hook.sink.headers", {"X-Team": "one"})),
    ("sink webhook", "batch"): (HOLDS, ("queries.hook.sink.batch", 1)),
    ("sink webhook", "text"): (HOLDS, ("queries.hook.sink.text", "{k}")),
    ("sink webhook", "dedup"): (HOLDS, ("queries.hook.sink.dedup", {"columns": ["k"], "for": "1 s"})),
    ("sink webhook", "throttle"): (HOLDS, ("queries.hook.sink.throttle", "1 s")),
    ("sink webhook", "dead_letters"): (HOLDS, ("queries.hook.sink.dead_letters", "./dead")),
    ("sink webhook", "give_up_after"): (HOLDS, ("queries.hook.sink.give_up_after", "1 s")),
    ("sink console", "type"): (HOLDS, ("queries.files.sink", {"type": "console"})),
    ("sink memory", "type"): (HOLDS, ("queries.files.sink", {"type": "memory"})),
    ("network", "distances"): (HOLDS, ("network", {"distances": {"local": {"left": "20 ms"}}})),
    ("network", "matrix"): (HOLDS, ("network", {"matrix": "./rtt.txt"})),
    ("network", "inject"): (HOLDS, ("network", {"distances": {"local": {"left": "20 ms"}}, "inject": True})),
    ("results", "retention"): (HOLDS, ("results.retention", "2 days")),
    **{("control", key): (HOLDS, ("control", None)) for key in ControlDef.model_json_schema()["properties"]},
}
MODELS: dict[str, type[Settings]] = {
    "": JobText,
    "stream": StreamText,
    **SOURCES,
    "table": TableText,
    **TABLE_SOURCES,
    **NODES,
    "query": QueryDef,
    **{f"sink {name}": model for name, model in SINKS.items()},
    "results": ResultsDef,
    "control": ControlDef,
    "network": NetworkDef,
}


def keys_of(model: type[Settings]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def test_every_key_of_a_job_file_is_in_the_table() -> None:
    assert EDITS.keys() == {(name, key) for name, model in MODELS.items() for key in keys_of(model)}


def dumped(raw: dict[str, Any]) -> str:
    return yaml.safe_dump(raw, sort_keys=False)  # queries begin on the first node


def edited(place: str, value: Any) -> str:
    raw = copy.deepcopy(BASE)
    *above, key = place.split(".")
    section = raw
    for name in above:
        section = section[name]
    section[key] = value
    return dumped(raw)


@pytest.mark.parametrize(("section", "key"), list(EDITS), ids=lambda text: text or "job")
def test_an_edit_is_carried_out_or_said_to_change_nothing(folder: Path, section: str, key: str) -> None:
    outcome, (place, value) = EDITS[section, key]
    runs = Runs()
    (folder / "rtt.txt").write_text("0 20\n20 0\n")
    runs.start(written(folder, dumped(BASE)))
    job, before = runs.job, {name: query.id for name, query in runs.running.items()}
    runs.start(written(folder, edited(place, value)))
    after = {name: query.id for name, query in runs.running.items() if query.origin == "job"}
    assert after.keys() == BASE["queries"].keys()
    found = {
        REPLACED: any(before[name] != number for name, number in after.items()),
        SAID: [text.split(":")[0] for text in runs.ignored] == [place],
        ELSEWHERE: bool(runs.elsewhere),
    }
    assert {name for name, is_so in found.items() if is_so} == ({outcome} & found.keys())
    assert job is not None and runs.job is not None
    assert (runs.job != job) == (outcome != NO_OTHER), "it arrives at those whom it concerns"
    assert (runs.job.store != job.store) == (outcome == OTHER_JOB)
    for name, query in runs.job.queries.items():
        assert runs.running[name].sink == (None if query.sink is None else query.sink.record())


def test_a_query_is_replaced_when_a_view_says_something_else(folder: Path) -> None:
    runs = Runs()
    text = "views: {{some: SELECT k FROM files WHERE k > {}}}\n"
    reads = copy.deepcopy(BASE)
    reads["queries"]["files"] = "SELECT k FROM some"
    runs.start(written(folder, text.format(1) + dumped(reads)))
    before = {name: query.id for name, query in runs.running.items()}
    assert runs.start(written(folder, text.format(1) + dumped(reads))) == []
    runs.start(written(folder, text.format(2) + dumped(reads)))
    changed = {name for name, query in runs.running.items() if before.get(name) != query.id}
    assert changed == {"files"}


def test_what_changes_nothing_is_said_in_words_as_long_as_it_does(folder: Path) -> None:
    runs = Runs()
    runs.start(written(folder, dumped(BASE)))
    query = {**BASE["queries"]["files"], "from": "2026-01-01", "node": "left"}
    for _ in range(2):
        runs.start(written(folder, edited("queries.files", query)))
        assert runs.ignored == [
            "queries.files.from: the query stands and was to answer from the beginning on; that stays so, since from "
            "counts when a query comes\n    -> give it another name; or start the job without it once, which withdraws "
            "it, and then with it again",
            "queries.files.node: the query stands on local and stays there: node is where a query begins\n"
            "    -> `towpath migrate files left` moves it while the job runs",
        ]
    runs.start(written(folder, dumped(BASE)))
    assert runs.ignored == []


def test_what_ran_on_a_node_that_is_elsewhere_now_goes_on_in_a_new_epoch(folder: Path) -> None:
    """Who was there may still run it, and its next commit must fail."""
    runs = Runs()
    runs.start(written(folder, dumped(BASE)))
    runs.start(written(folder, edited("nodes.left.address", "sc://left:15002/;use_ssl=true")))
    assert {carrier.epoch for carrier in runs.state.carriers.values()} == {0}
    runs.start(written(folder, edited("nodes.local", BASE["nodes"]["left"])))
    assert {carrier.epoch for carrier in runs.state.carriers.values()} == {1}


def test_the_guide_has_every_key_that_can_be_edited() -> None:
    _, guide = GUIDE.read_text().split("## Changing the file of a job that has run")
    named = {word for text in re.findall("`([^`]+)`", guide) for word in re.findall(r"[a-z_]+", text)}
    assert {key for section, key in EDITS if section != "control"} <= named
