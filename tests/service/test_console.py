"""What the console asks the service for, over HTTP: who may, what is answered, and that its description says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from click.testing import CliRunner
from tests.console.crowd import MIXED, Served, crowd, some_queries

from towpath.cli import main
from towpath.console.sessions import LASTS_S, MOST, Role, Sessions
from towpath.errors import ServiceError
from towpath.service.client import Client

from .fakes import FakeVerbs, service

FILTERS = 20


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with crowd(tmp_path_factory.mktemp("crowd"), MIXED | some_queries(FILTERS)) as found:
        yield found


@pytest.fixture
def http(served: Served) -> Iterator[httpx2.Client]:
    """Nobody yet."""
    with httpx2.Client(base_url=served.address, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture
def operator(served: Served, http: httpx2.Client) -> httpx2.Client:
    return logged_in(http, served, served.token)


@pytest.fixture
def reader(served: Served, http: httpx2.Client) -> httpx2.Client:
    return logged_in(http, served, served.reader_token)


def logged_in(http: httpx2.Client, served: Served, token: str) -> httpx2.Client:
    http.headers["Origin"] = served.address
    answer = http.post("/console/session", json={"token": token})
    assert answer.status_code == 200
    http.cookies.update(answer.cookies)
    return http


# --- who may ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/status", "/queries", "/console/queries", "/console/events", "/openapi.json", "/no"])
def test_without_a_session_nothing_is_answered(http: httpx2.Client, path: str) -> None:
    assert http.get(path).status_code == 401
    assert http.get(path, headers={"Authorization": "Bearer no"}).status_code == 401
    assert http.get(path, headers={"Cookie": "towpath-00000000=no"}).status_code == 401


@pytest.mark.parametrize("token", ["", "no", "né", "\ud83d"])
def test_a_wrong_token_is_refused(http: httpx2.Client, served: Served, token: str) -> None:
    body = json.dumps({"token": token}).encode()
    answer = http.post("/console/session", content=body, headers={"Origin": served.address})
    assert answer.status_code in {400, 401} and "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "body", [b'{"token": "' + b"x" * 5000 + b'"}', iter([b'{"token": "x"}'])], ids=["long", "chunks"]
)
def test_who_is_not_known_sends_no_more_than_a_token(http: httpx2.Client, served: Served, body: Any) -> None:
    assert http.post("/console/session", content=body, headers={"Origin": served.address}).status_code == 413


def test_a_session_is_a_cookie_that_scripts_and_other_sites_do_not_get(http: httpx2.Client, served: Served) -> None:
    answer = http.post("/console/session", json={"token": served.token}, headers={"Origin": served.address})
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "Path=/", "SameSite=strict", f"Max-Age={LASTS_S}"} <= set(cookie.split("; "))
    assert "Secure" not in cookie  # there is no TLS on this machine
    assert answer.json() == {"role": "operator", "job": "market", "lasts_s": LASTS_S}


def test_the_store_has_only_a_hash_of_it_and_only_its_owner_reads_that(operator: httpx2.Client, served: Served) -> None:
    (cookie,) = dict(operator.cookies).values()
    file = served.store / "console.json"
    assert cookie not in file.read_text() and served.token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_who_logs_out_is_out(operator: httpx2.Client) -> None:
    assert operator.get("/status").status_code == 200
    assert operator.delete("/console/session").status_code == 204
    assert operator.get("/status").status_code == 401
    assert operator.get("/console/session").json() == {"role": None, "job": "", "lasts_s": LASTS_S}


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1"])
@pytest.mark.parametrize("path", ["/withdraw", "/console/check", "/console/session"])
def test_a_page_of_somebody_else_changes_nothing(operator: httpx2.Client, origin: str | None, path: str) -> None:
    del operator.headers["Origin"]
    headers = {} if origin is None else {"Origin": origin}
    answer = operator.post(path, json={"names": ["high-bids"]}, headers=headers)
    said = "expected a request of a page of this service" if origin is None else "a page of another origin asks"
    assert answer.status_code == 403 and said in answer.json()["message"]
    assert operator.get("/console/query?name=high-bids").status_code == 200


def test_a_reader_looks_at_everything_and_changes_nothing(reader: httpx2.Client, served: Served) -> None:
    assert reader.get("/console/session").json()["role"] == "reader"
    assert reader.get("/status").status_code == reader.get("/console/queries").status_code == 200
    assert reader.post("/console/check", json={"sql": "SELECT"}).status_code == 200
    changes: dict[str, dict[str, Any]] = {
        "/withdraw": {"names": ["high-bids"]},
        "/moves": {"subject": "high-bids", "to": "right"},
        "/drain": {"node": "left"},
        "/queries": {"queries": {"q": {"sql": "SELECT price FROM bids"}}, "folder": "/"},
    }
    for path, body in changes.items():
        assert reader.post(path, json=body).status_code == 403
    with (
        Client(served.address, served.reader_token) as client,
        pytest.raises(ServiceError, match="logged in as a reader"),
    ):
        client.withdraw(["high-bids"])


def test_sessions_outlive_the_service_and_end(tmp_path: Path) -> None:
    now = 1000.0
    cookie = Sessions(tmp_path / "console.json", lambda: now).begin(Role.READER)
    again = Sessions(tmp_path / "console.json", lambda: now)
    found = again.find(cookie)
    assert found is not None and found.role is Role.READER
    assert again.find(None) is again.find("no") is again.find("\ud83d") is None
    now += LASTS_S
    assert again.find(cookie) is None


def test_there_are_only_so_many_sessions(tmp_path: Path) -> None:
    clock = iter(range(10_000))
    sessions = Sessions(tmp_path / "console.json", lambda: float(next(clock)))
    cookies = [sessions.begin(Role.OPERATOR) for _ in range(MOST + 2)]
    assert [sessions.find(cookie) is not None for cookie in cookies] == [False, False] + [True] * MOST


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": {}}', '{"a": {"role": "king", "ends": 1}}', '{"a": 5}'])
def test_a_damaged_file_of_sessions_only_logs_everybody_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "console.json").write_text(text)
    sessions = Sessions(tmp_path / "console.json")
    assert sessions.find(sessions.begin(Role.OPERATOR)) is not None


def test_the_command_gives_links_for_both(served: Served, http: httpx2.Client) -> None:
    for options, role in ([], "operator"), (["--reader"], "reader"):
        said = CliRunner().invoke(main, ["console", str(served.store), *options]).stdout.strip()
        address, _, token = said.partition("/#token=")
        assert address == served.address
        assert http.get("/console/session", headers={"Authorization": f"Bearer {token}"}).json()["role"] == role
        answer = json.loads(CliRunner().invoke(main, ["console", str(served.store), *options, "--json"]).stdout)
        assert answer == {"link": said}


def test_a_service_without_pages_has_no_link(tmp_path: Path) -> None:
    with service(tmp_path, FakeVerbs()):
        refused = CliRunner().invoke(main, ["console", "--store", str(tmp_path)])
    assert refused.exit_code == 1 and "this service has no console" in refused.stderr


# --- pages -----------------------------------------------------------------------------------------------------------


def test_pages_allow_nothing_inline_and_nothing_from_elsewhere(http: httpx2.Client) -> None:
    page = http.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert (page.headers["cache-control"], page.headers["x-content-type-options"]) == ("no-cache", "nosniff")
    assert not re.search(r"<style|<script(?![^>]* src=)| style=| on[a-z]+=", page.text)
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert named and not any(urlsplit(name).netloc for name in named)
    for name in named:
        file = http.get(name.removeprefix("."))
        assert file.status_code == 200 and file.headers["x-content-type-options"] == "nosniff"
        hashed = name.startswith("./assets/")
        assert file.headers["cache-control"] == ("public, max-age=31536000, immutable" if hashed else "no-cache")
        again = http.get(name.removeprefix("."), headers={"If-None-Match": file.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/assets/no.js", "/assets/../app.py", "/..%2fapp.py", "/assets/", "/index.html"])
def test_nothing_but_the_files_of_the_pages_is_given(http: httpx2.Client, path: str) -> None:
    assert http.get(path).status_code == 401


# --- what is answered ------------------------------------------------------------------------------------------------


def listed(http: httpx2.Client, **asked: Any) -> dict[str, Any]:
    answer = http.get("/console/queries", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_list_is_searched_filtered_sorted_and_cut(operator: httpx2.Client) -> None:
    everything = listed(operator)
    assert everything["total"] == everything["of"] == len(everything["rows"]) == FILTERS + len(MIXED)
    assert [row["name"] for row in everything["rows"]] == sorted(row["name"] for row in everything["rows"])
    found = listed(operator, search="SHOP bids-", order="name", descending=True, limit=2, offset=1)
    # Every fourth is of the shop: 3, 7, 11, 15, 19.
    assert (found["total"], [row["name"] for row in found["rows"]]) == (5, ["bids-00015", "bids-00011"])
    assert listed(operator, node="right", search="bids-000")["total"] == 7  # of 0, 3, ..., 18
    assert listed(operator, state="set aside")["total"] == 0
    assert listed(operator, limit=0)["rows"] == []


@pytest.mark.parametrize(
    "asked", [{"limit": 501}, {"limit": -1}, {"offset": -1}, {"order": "no"}, {"search": "x" * 1001}, {"limit": "x"}]
)
def test_a_list_that_cannot_be_is_refused(operator: httpx2.Client, asked: Mapping[str, Any]) -> None:
    answer = operator.get("/console/queries", params=dict(asked))
    assert answer.status_code == 400 and next(iter(asked)) in answer.json()["message"]


def test_a_query_has_its_place(operator: httpx2.Client) -> None:
    found = operator.get("/console/query", params={"name": "bids-per-channel"}).json()
    assert (found["state"], found["nodes"], found["shared_with"]) == ("standing", ["right"], 0)
    assert found["sql"] == MIXED["bids-per-channel"]["sql"]
    missing = operator.get("/console/query", params={"name": "no"})
    assert (missing.status_code, missing.json()["error"]) == (404, "UnknownQueryError")


def test_fragments_are_counted_by_carrier(operator: httpx2.Client) -> None:
    found = operator.get("/console/fragments").json()
    assert sum(carrier["count"] for carrier in found) == FILTERS + len(MIXED)
    assert {query for c in found for f in c["drawn"] for query in f["queries"]} >= MIXED.keys()


def test_mistakes_have_their_places(operator: httpx2.Client) -> None:
    sql = "SELECT auction,\n  pric\nFROM bids WHERE prize > 1"
    found = operator.post("/console/check", json={"sql": sql, "name": "a b"}).json()
    assert [(p["line"], p["column"], p["length"]) for p in found["problems"]] == [(None,) * 3, (2, 3, 4), (3, 17, 5)]
    assert found["columns"] == {}
    good = operator.post("/console/check", json={"sql": "SELECT auction, price * 2 AS twice FROM bids"}).json()
    assert good == {"problems": [], "columns": {"auction": "bigint", "twice": "double"}}


def test_a_query_is_explained_and_nothing_changes(operator: httpx2.Client) -> None:
    before = listed(operator)["of"]
    found = operator.post("/console/explain", json={"sql": MIXED["high-bids"]["sql"]}).json()
    (piece,) = found["pieces"]
    assert piece["seats"][0]["node"] == "left" and "high-bids" in piece["seats"][0]["equal"]
    assert found["plan"]["operator"] == "project" and listed(operator)["of"] == before
    wrong = operator.post("/console/explain", json={"sql": "SELECT pric FROM bids"})
    assert wrong.status_code == 422 and wrong.json()["problems"][0]["hint"] == "did you mean price?"


def test_results_of_a_query_that_has_none(operator: httpx2.Client) -> None:
    found = operator.get("/console/results", params={"name": "high-bids"}).json()
    assert (found["columns"], found["rows"], found["more"]) == (["auction", "bidder", "price"], [], False)
    assert operator.get("/console/results", params={"name": "no"}).status_code == 404


# --- events ----------------------------------------------------------------------------------------------------------


def first_event(http: httpx2.Client, after: str = "") -> tuple[str, dict[str, Any]]:
    with http.stream("GET", "/console/events", headers={"Last-Event-ID": after} if after else {}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        number = ""
        for line in answer.iter_lines():
            if line.startswith("id: "):
                number = line.removeprefix("id: ")
            if line.startswith("data: "):
                return number, json.loads(line.removeprefix("data: "))
    raise AssertionError("the stream ended")


def test_the_first_event_has_everything_and_later_ones_what_changed(operator: httpx2.Client) -> None:
    number, first = first_event(operator)
    assert first.keys() >= {"figures", "nodes", "carriers", "streams", "moves", "history", "queries"}
    assert first["queries"]["count"] == FILTERS + len(MIXED)
    _, later = first_event(operator, number)
    assert "streams" not in later and "figures" in later
    _, other = first_event(operator, "ffffffff-999")  # of the service that was there before
    assert other.keys() >= first.keys()


@pytest.mark.parametrize("after", ["x", "-", "--1", "a-b", "1-" + "9" * 90, "é-1"])
def test_an_id_that_nobody_gave_is_as_none(operator: httpx2.Client, after: str) -> None:
    with operator.stream("GET", "/console/events", params={"after": after}) as answer:
        assert '"streams"' in next(line for line in answer.iter_lines() if line.startswith("data: "))


# --- its description -------------------------------------------------------------------------------------------------


def test_the_description_names_every_endpoint(operator: httpx2.Client) -> None:
    document = operator.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    named = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert {("POST", "/queries"), ("GET", "/status"), ("POST", "/console/check"), ("GET", "/console/events")} <= named
    for method, path in sorted(named - {("GET", "/console/events"), ("DELETE", "/console/session")}):
        answer = operator.request(method, path, content=b"")
        assert answer.status_code in {200, 400}, (method, path, answer.text)  # 400: something has to be said


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/status", {}),
        ("/console/session", {}),
        ("/console/queries", {}),
        ("/console/query", {"name": "high-bids"}),
        ("/console/results", {"name": "high-bids"}),
    ],
)
def test_an_answer_has_what_its_description_says(operator: httpx2.Client, path: str, asked: dict[str, str]) -> None:
    document = operator.get("/openapi.json").json()
    said = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    schema = document["components"]["schemas"][said["$ref"].rsplit("/", 1)[1]]
    assert operator.get(path, params=asked).json().keys() == schema["properties"].keys()


def test_every_reference_of_the_description_is_in_it(operator: httpx2.Client) -> None:
    document = operator.get("/openapi.json").json()
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert named <= document["components"]["schemas"].keys()


# --- beside it -------------------------------------------------------------------------------------------------------


def test_a_reader_may_read_the_metrics_and_everybody_asks_whether_it_is_well(
    http: httpx2.Client, served: Served
) -> None:
    assert http.get("/healthz").status_code == 200
    assert http.get("/readyz").json()["ready"] is True
    assert http.get("/metrics").status_code == 401
    assert "towpath_queries" in http.get("/metrics", headers={"Authorization": f"Bearer {served.reader_token}"}).text
    assert "towpath_queries" in logged_in(http, served, served.reader_token).get("/metrics").text
