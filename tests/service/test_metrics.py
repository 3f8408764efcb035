"""The metrics of a job: what they are called, who may read them, how many there can be."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from towpath.service import app
from towpath.service.messages import JobStatus
from towpath.service.metrics import MOST_CARRIERS, MOST_STREAMS, Grown, Scraping, of_job
from towpath.service.request_queue import RequestQueue

from .fakes import COST, FakeVerbs

ROOT = Path(__file__).parents[2]
OPERATOR, SCRAPER = "the-token", "for-metrics"


class Verbs(FakeVerbs):
    def __init__(self, store: Path) -> None:
        super().__init__()
        self.store = store
        self.more: dict[str, Any] = {}
        self.queries_with_costs = 1

    def status(self) -> JobStatus:
        return dataclasses.replace(super().status(), store=str(self.store), **self.more)

    def costs(self) -> list[Any]:
        return [
            dataclasses.replace(COST, name=f"q{n}", estimated_seconds_per_trigger=n / 10)
            for n in range(self.queries_with_costs)
        ]


@pytest.fixture
def verbs(tmp_path: Path) -> Verbs:
    return Verbs(tmp_path)


@pytest.fixture
def http(verbs: Verbs) -> Iterator[TestClient]:
    desk, stopped = RequestQueue(), threading.Event()

    def loop() -> None:
        while not stopped.wait(0.005):
            desk.serve()

    thread = threading.Thread(target=loop)
    thread.start()
    yield TestClient(app.build(verbs, desk, OPERATOR, scraping=Scraping(SCRAPER, 3)))
    stopped.set()
    thread.join()


def scraped(http: TestClient) -> dict[str, dict[tuple[str, ...], float]]:
    """Each time series by its name and the values of its labels."""
    answer = http.get("/metrics", headers={"Authorization": f"Bearer {SCRAPER}"})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/plain")
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_what_there_is(http: TestClient) -> None:
    found = scraped(http)
    assert found["towpath_queries"] == {("running",): 1, ("set_aside",): 0}
    assert found["towpath_rows_read_total"] == {(): 1000}
    assert found["towpath_stored_result_rows"] == {(): 10}
    assert found["towpath_late_rows_total"] == {("bids",): 3}
    assert found["towpath_event_timestamp_seconds"] == {(): 1.5}
    assert found["towpath_node_up"] == {("left",): 1, ("right",): 1}
    assert found["towpath_carrier_rows_read_total"] == {("c0", "filter", "left"): 1000}
    assert found["towpath_moves_in_progress"] == {(): 1}
    buckets = found["towpath_micro_batch_duration_seconds_bucket"]
    assert (buckets["0.1",], buckets["0.25",], buckets["0.5",], buckets["60.0",], buckets["+Inf",]) == (0, 3, 4, 4, 5)
    assert found["towpath_micro_batch_duration_seconds_sum"] == {(): 62}
    assert found["process_resident_memory_bytes"][()] > 1e6
    assert found["towpath_store_free_bytes"][()] > 0


@pytest.mark.parametrize(
    ("token", "path", "code"),
    [
        (SCRAPER, "/metrics", 200),
        (OPERATOR, "/metrics", 200),
        ("", "/metrics", 401),
        ("guessed", "/metrics", 401),
        (SCRAPER, "/status", 401),
        (SCRAPER, "/queries", 401),
    ],
)
def test_who_may_read_them(http: TestClient, token: str, path: str, code: int) -> None:
    assert http.get(path, headers={"Authorization": f"Bearer {token}"}).status_code == code


def test_their_token_sends_nothing(http: TestClient) -> None:
    headers = {"Authorization": f"Bearer {SCRAPER}"}
    assert http.post("/metrics", headers=headers).status_code == 401
    assert http.request("GET", "/metrics", headers=headers, content=b"x").status_code == 401


def test_without_a_token_of_their_own_none_is_as_good_as_an_empty_one(verbs: Verbs) -> None:
    http = TestClient(app.build(verbs, RequestQueue(), OPERATOR))
    for header in ("Bearer ", "Bearer", ""):
        assert http.get("/metrics", headers={"Authorization": header}).status_code == 401


def test_only_the_dearest_queries_are_listed(verbs: Verbs, http: TestClient) -> None:
    verbs.queries_with_costs = 10_000
    assert scraped(http)["towpath_query_micro_batch_seconds"] == {
        ("q9999",): pytest.approx(999.9),
        ("q9998",): pytest.approx(999.8),
        ("q9997",): pytest.approx(999.7),
    }


def test_the_number_of_series_is_bounded(verbs: Verbs, http: TestClient) -> None:
    (carrier,) = verbs.status().carriers
    carriers = [dataclasses.replace(carrier, id=f"c{n}", rows=n) for n in range(5000)]
    verbs.more = {"carriers": carriers, "late_by_stream": {f"s{n}": n + 1 for n in range(5000)}}
    found = scraped(http)
    assert len(found["towpath_carrier_rows_read_total"]) == MOST_CARRIERS
    assert len(found["towpath_late_rows_total"]) == MOST_STREAMS
    assert found["towpath_rows_read_total"] == {(): sum(range(5000))}
    assert sum(map(len, found.values())) < 1000


def test_what_is_counted_never_goes_down() -> None:
    grown = Grown()
    assert [grown.note("results", {"": n}) for n in (10, 25, 5, 7)] == [10, 25, 25, 27]
    assert [grown.note("read", rows) for rows in ({"a": 5, "b": 1}, {"a": 9}, {"a": 9, "c": 2})] == [6, 10, 12]


def test_names_that_could_break_the_format_are_written_so_that_they_do_not(verbs: Verbs, http: TestClient) -> None:
    odd = 'a"b\\c\nd'
    verbs.more = {"late_by_stream": {odd: 1}}
    assert scraped(http)["towpath_late_rows_total"] == {(odd,): 1}


def test_a_store_that_is_gone_is_left_out(verbs: Verbs) -> None:
    status = dataclasses.replace(verbs.status(), store="/nowhere")
    assert "towpath_store_free_bytes" not in {m.name for m in of_job(status, verbs.durations(), Grown())}


def test_the_dashboard_asks_for_metrics_that_there_are(http: TestClient) -> None:
    dashboard = json.loads((ROOT / "examples/grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    named = set(re.findall(r"\b(?:towpath|process)_[a-z_]+\b", " ".join(asked)))
    assert len(named) > 15
    assert named - scraped(http).keys() == set()


def test_the_guide_has_every_metric_and_no_other(http: TestClient) -> None:
    guide = (ROOT / "docs/observability.md").read_text()
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in scraped(http) if name.startswith("towpath_")}
    assert families == set(re.findall(r"^\| `(towpath_[a-z_]+)`", guide, re.MULTILINE))
