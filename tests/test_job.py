"""Job files: the good ones are read as they should be, the bad ones are answered as their first lines say.

A bad file begins with the whole answer, one comment line each; $JOBS stands for tests/data/jobs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.api.checking import check
from towpath.config.network import NetworkDef
from towpath.config.nodes import NODES
from towpath.config.settings import BEGINNING, NOW, Settings
from towpath.errors import JobError, QueryError
from towpath.job import KINDS, Job, QueryDef, ResultsDef, load, queries
from towpath.results.sinks.console import ConsoleSinkDef
from towpath.results.sinks.parquet import ParquetSinkDef
from towpath.schema import Column, Stream, Type
from towpath.streams.definition import StreamText
from towpath.streams.sources import FilesSource, RateSource, TrafficSource
from towpath.tables.definition import TABLE_SOURCES, TableText

JOBS = Path(__file__).parent / "data" / "jobs"
EXAMPLES = Path(__file__).parents[1] / "examples"
NOT_JOBS = {"problem.yaml", "sites.yaml"}  # tests/problems has those
GUIDE = Path(__file__).parents[1] / "docs" / "job-file.md"
SECTIONS = (NODES, TABLE_SOURCES, *KINDS.values())
DOCUMENTED = [
    QueryDef,
    ResultsDef,
    StreamText,
    TableText,
    NetworkDef,
    *(model for models in SECTIONS for model in models.values()),
]


def files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.yaml") if file.name not in NOT_JOBS)


def write(folder: Path, text: str) -> Job:
    file = folder / "job.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file)


def answer_in(file: Path) -> list[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("# ") for line in lines if line.startswith("# ")]


@pytest.mark.parametrize("file", files(JOBS / "bad_folder"), ids=lambda f: f.stem)
def test_bad_files_of_the_queries_folder_are_reported(file: Path) -> None:
    """They keep no other query from running, and `check` refuses them."""
    lines = [line for problem in load(file).folder.problems for line in str(problem).splitlines()]
    assert lines == answer_in(file)


@pytest.mark.parametrize("file", files(JOBS / "bad"), ids=lambda f: f.stem)
def test_bad_file_is_answered(file: Path) -> None:
    with pytest.raises(JobError) as caught:
        load(file)
    answer = "\n".join(str(problem) for problem in caught.value.problems)
    assert answer.replace(str(JOBS), "$JOBS").splitlines() == answer_in(file)
    assert str(caught.value).startswith(f"{file} cannot be used:\n")


@pytest.mark.parametrize("file", [*files(JOBS / "good"), *files(EXAMPLES)], ids=lambda f: f.stem)
def test_good_file_is_read(file: Path) -> None:
    job = load(file)
    assert job.store.is_absolute()
    assert job.catalog.keys() == {**job.streams, **job.tables}.keys()
    for stream in (definition.stream for definition in job.streams.values()):
        time = stream.column(stream.time)
        assert time is not None and time.type is Type.TIMESTAMP


def test_there_are_files() -> None:
    assert len(files(JOBS / "bad")) >= 40
    assert len(files(JOBS / "good")) >= 3
    assert len(files(EXAMPLES)) >= 3


def test_defaults() -> None:
    job = load(JOBS / "good" / "smallest.yaml")
    assert job.store == JOBS / "good" / "smallest.store"
    assert (job.trigger_ms, job.queries, job.queries_folder) == (1000, {}, None)
    assert job.results.retention_us == 7 * 86_400_000_000
    assert {n: (d.type, d.cores, d.memory, d.spark) for n, d in job.nodes.items()} == {
        "local": ("embedded", 2, "4g", {})
    }
    clock = job.streams["clock"]
    columns = (Column("value", Type.BIGINT), Column("timestamp", Type.TIMESTAMP))
    assert clock.stream == Stream("clock", columns, "timestamp", 0, 100.0)
    assert clock.source == RateSource(type="rate", rate=100)
    assert clock.idle_after_ms == 10_000


def test_every_key() -> None:
    job = load(JOBS / "good" / "every_key.yaml")
    assert job.store == JOBS / "market.store"
    assert job.trigger_ms == 500
    assert job.results.retention_us is None
    bids = job.streams["bids"]
    assert bids.source == FilesSource(type="files", path=str(JOBS / "feeds"), format="csv", header=False)
    columns = (Column("auction", Type.BIGINT), Column("price", Type.DOUBLE), Column("at", Type.TIMESTAMP))
    assert bids.stream == Stream("bids", columns, "at", 2_000_000)
    assert bids.idle_after_ms == 0
    node = job.nodes["big.one"]
    assert (node.cores, node.memory) == (8, "512m")
    assert node.spark == {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    assert job.queries["short"].sql == "SELECT price FROM bids"
    assert (job.queries["short"].sink, job.queries["short"].start) == (None, BEGINNING)
    assert job.queries["long"].start == NOW
    assert job.queries["long"].sink == ParquetSinkDef(type="parquet", path=str(JOBS / "good" / "out"))
    assert job.queries["shown"].sink == ConsoleSinkDef(type="console")


def test_generators_bring_columns_rate_and_delay() -> None:
    catalog = load(JOBS / "good" / "generators.yaml").catalog
    assert [c.name for c in catalog["bids"].columns] == ["auction", "bidder", "price", "channel", "url", "at"]
    assert (catalog["bids"].rate, catalog["bids"].delay_us) == (4600.0, 2_000_000)
    assert (catalog["people"].rate, catalog["people"].delay_us) == (100.0, 0)


def test_streams_of_one_folder_differ_in_a_value() -> None:
    streams = load(JOBS / "good" / "one_folder.yaml").streams
    parts = {name: s.source.part for name, s in streams.items() if isinstance(s.source, FilesSource)}
    assert parts == {**{f"pump{n}": ("device", str(n)) for n in (1, 2, 3)}, "valve": ("open", "true")}


def test_a_range_is_many_streams() -> None:
    streams = load(JOBS / "good" / "generators.yaml").streams
    sources = [streams[f"sensor{n}"].source for n in range(1, 97)]
    assert [s.sensor for s in sources if isinstance(s, TrafficSource)] == list(range(1, 97))
    assert len({streams[f"sensor{n}"].stream.schema_class for n in range(1, 97)}) == 1


def test_folder_of_queries() -> None:
    job = load(JOBS / "good" / "folder.yaml")
    assert list(job.queries) == ["here", "by-channel", "hot"]
    assert job.queries["hot"].sql == "SELECT auction, price FROM bids WHERE price > 900\n"
    assert job.queries_folder == JOBS / "queries"


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("500 ms", 500_000),
        ("2 seconds", 2_000_000),
        ("1 second", 1_000_000),
        ("10 minutes", 600_000_000),
        ("1 hour", 3_600_000_000),
        ("7 days", 604_800_000_000),
        ("1.5 s", 1_500_000),
        ("0.25", 250_000),
        ("3", 3_000_000),
        ("2SECONDS", 2_000_000),
    ],
)
def test_durations(tmp_path: Path, text: str, us: int) -> None:
    job = write(tmp_path, f"streams: {{s: {{source: {{type: rate, rate: 1}}, delay: {text}}}}}")
    assert job.catalog["s"].delay_us == us


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("2026-01-01T00:00:00Z", 1_767_225_600_000_000),
        ("2026-01-01", 1_767_225_600_000_000),
        ("2026-01-01T01:00:00.25+01:00", 1_767_225_600_250_000),
        ("1969-12-31T23:59:59Z", -1_000_000),
    ],
)
def test_start(tmp_path: Path, text: str, us: int) -> None:
    source = f"{{type: auction, table: bids, rate: 1, start: {text}}}"
    assert write(tmp_path, f"streams: {{s: {{source: {source}}}}}").streams["s"].source.model_dump()["start_us"] == us


def test_a_path_with_a_scheme_is_left_to_spark(tmp_path: Path) -> None:
    source = "{type: files, path: 's3a://bucket/bids', format: json}"
    job = write(tmp_path, f"streams: {{s: {{source: {source}, schema: {{at: timestamp}}, time: at}}}}")
    assert job.streams["s"].source.model_dump()["path"] == "s3a://bucket/bids"


def test_keys_that_yaml_takes_for_other_things_are_names(tmp_path: Path) -> None:
    job = write(tmp_path, "streams: {on: {source: {type: rate, rate: 1}}}\nqueries: {2024: SELECT value FROM clock}")
    assert (list(job.streams), list(job.queries)) == (["on"], ["2024"])


def test_merged_keys_may_be_overridden(tmp_path: Path) -> None:
    text = "streams:\n  a: &a {source: {type: rate, rate: 1}, delay: 1}\n  b: {<<: *a, delay: 2}\n"
    assert {n: s.delay_us for n, s in write(tmp_path, text).catalog.items()} == {"a": 1_000_000, "b": 2_000_000}


def test_a_missing_file_is_answered(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="cannot be read: No such file or directory"):
        load(tmp_path / "none.yaml")


def test_a_file_that_is_not_text_is_answered(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(JobError, match="is not UTF-8 text"):
        load(tmp_path / "job.yaml")


def test_a_query_file_that_is_not_text_keeps_only_itself_out(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "r.sql").write_text("SELECT value FROM s")
    job = write(tmp_path, "streams: {s: {source: {type: rate, rate: 1}}}\nqueries_folder: .")
    assert list(job.queries) == ["r"]
    assert [str(p) for p in job.folder.problems] == [
        "queries_folder, q.sql: cannot be read: byte 1 is 0xff, which is not UTF-8\n    -> save it as UTF-8 text"
    ]
    with pytest.raises(QueryError, match=r"queries_folder, q\.sql: cannot be read"):
        check(job)


@pytest.mark.parametrize("model", DOCUMENTED, ids=lambda model: model.__name__)
def test_every_key_is_in_the_guide(model: type[Settings]) -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    keys = {field.alias or name for name, field in model.model_fields.items()} - {"type"}
    assert [key for key in keys if f"| `{key}` |" not in guide and f"{{type: parquet, {key}: " not in guide] == []


def test_a_query_that_comes_later_does_not_write_among_the_rows_of_a_stream_either(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    source = f"{{type: files, path: {rows}, format: parquet}}"
    job = write(tmp_path, f"streams: {{s: {{source: {source}, schema: {{at: timestamp}}, time: at}}}}")
    asked = {"q": {"sql": "SELECT at FROM s", "sink": {"type": "parquet", "path": "rows/out"}}}
    with pytest.raises(JobError, match=r"the sink .*/rows/out lies in the folder of the stream s"):
        queries(asked, tmp_path, job.nodes, {}, job.streams)


THREE = """
nodes: {c: {type: embedded, cores: 1}, a: {type: embedded, cores: 1}, b: {type: embedded, cores: 1}}
streams: {clock: {node: b, source: {type: rate, rate: 100}}}
"""


def test_distances_are_round_trips_in_the_file_and_latencies_in_the_job(tmp_path: Path) -> None:
    job = write(tmp_path, THREE + "network: {distances: {c: {a: 20 ms}, a: {b: 1 s}}}")
    assert job.distances == {("a", "c"): 0.010, ("a", "b"): 0.5} and not job.inject
    assert job.streams["clock"].node == "b"


def test_a_matrix_has_its_rows_in_the_order_of_the_nodes_and_may_lack_some(tmp_path: Path) -> None:
    (tmp_path / "rtt.txt").write_text("0 20 -1\n40 0 nan\n0 100 0\n")  # c, a, b; 20 and 40 ms between c and a
    job = write(tmp_path, THREE + "network: {matrix: rtt.txt}")
    assert job.distances == {("a", "c"): pytest.approx(0.015), ("a", "b"): pytest.approx(0.050)}
