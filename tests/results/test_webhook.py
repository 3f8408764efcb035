"""The webhook sink, against real receivers on this machine: they take, refuse, hang, and are killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from towpath.errors import SinkError
from towpath.results import SinkFeeder
from towpath.results.sinks import webhook
from towpath.results.sinks.base import SinkStep, SinkWaits
from towpath.results.sinks.webhook import WebhookSettings, WebhookSink, WebhookSinkDef

from .logs import Row, part, write_batch

ROWS = pa.table({"auction": [1, 2, 1, 3], "price": [9.5, None, 7.0, float("nan")], "channel": ["a", 'b"{', "ä", None]})


@dataclass
class Heard:
    """A receiver in this process: what it was sent, and what it is to answer."""

    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # the next ones; then 200
    requests: list[tuple[dict[str, str], Any]] = field(default_factory=list)
    hangs_s: float = 0.0
    address: str = ""

    @property
    def keys(self) -> list[str]:
        return [headers["idempotency-key"] for headers, _ in self.requests]

    @property
    def rows(self) -> list[Any]:
        return [row for _, body in self.requests for row in body["rows"]]


@contextmanager
def receiving() -> Iterator[Heard]:
    heard = Heard()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.requests.append(({k.lower(): v for k, v in self.headers.items()}, body))
            time.sleep(heard.hangs_s)
            code, headers = heard.answers.pop(0) if heard.answers else (200, {})
            self.send_response(code)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        heard.address = f"http://127.0.0.1:{server.server_address[1]}/hook"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield heard
        server.shutdown()


@pytest.fixture
def heard() -> Iterator[Heard]:
    with receiving() as found:
        yield found


class Time:
    """A clock that goes on by waiting alone."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waited: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Time:
    return Time()


def step(number: int = 0, *, repeated: bool = False) -> SinkStep:
    return SinkStep("s", f"q-{number}", 0, repeated, "q")


@pytest.fixture
def open_(heard: Heard, clock: Time) -> Callable[..., WebhookSink]:
    def opened(**settings: Any) -> WebhookSink:
        return WebhookSink(replace(WebhookSettings(heard.address, {}), **settings), clock, clock.sleep)

    return opened


def test_rows_are_json_some_in_each_request(heard: Heard, open_: Callable[..., WebhookSink]) -> None:
    open_(batch=3).write(ROWS, step())
    assert [body for _, body in heard.requests] == [
        {
            "query": "q",
            "rows": [
                {"auction": 1, "price": 9.5, "channel": "a"},
                {"auction": 2, "price": None, "channel": 'b"{'},
                {"auction": 1, "price": 7.0, "channel": "ä"},
            ],
        },
        {"query": "q", "rows": [{"auction": 3, "price": "NaN", "channel": None}]},
    ]
    assert heard.keys == ["q-0-0-3", "q-0-3-4"]
    assert {headers["content-type"] for headers, _ in heard.requests} == {"application/json"}


def test_a_text_is_a_line_for_each_row(heard: Heard, open_: Callable[..., WebhookSink]) -> None:
    open_(text="{{{auction}}}: {channel} at {price}").write(ROWS, step())
    ((_, body),) = heard.requests
    assert body == {"text": '{1}: a at 9.5\n{2}: b"{ at NULL\n{1}: ä at 7.0\n{3}: NULL at NaN'}


def test_secrets_come_from_the_environment(
    heard: Heard, open_: Callable[..., WebhookSink], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "s3cret")
    sink = open_(headers={"Authorization": "Bearer ${HOOK_TOKEN}"})
    sink.write(ROWS, step())
    assert heard.requests[0][0]["authorization"] == "Bearer s3cret"
    monkeypatch.delenv("HOOK_TOKEN")
    with pytest.raises(SinkError, match="not in the environment: HOOK_TOKEN"):
        open_(headers={"Authorization": "Bearer ${HOOK_TOKEN}"}).write(ROWS, step(1))


def test_who_fails_is_asked_again_under_the_same_key(
    heard: Heard, open_: Callable[..., WebhookSink], clock: Time
) -> None:
    heard.answers = [(503, {}), (429, {"Retry-After": "3"}), (500, {})]
    open_(batch=10).write(ROWS, step())
    assert heard.keys == ["q-0-0-4"] * 4
    assert clock.waited == [0.25, 3.0, 1.0], "twice as long each time, and as long as the receiver asks for"


def test_who_fails_for_long_holds_nobody_up(heard: Heard, open_: Callable[..., WebhookSink], clock: Time) -> None:
    heard.answers = [(200, {}), *[(503, {})] * 100]
    sink = open_(batch=1)
    with pytest.raises(SinkError, match=r"webhook at 127\.0\.0\.1:\d+ did not take results: it answered 503"):
        sink.write(ROWS, step())
    begun, asked = clock.now, len(heard.requests)
    assert begun - 1000 <= webhook.PATIENCE_S
    with pytest.raises(SinkError, match="it answered 503"):
        sink.write(ROWS, step(repeated=True))
    assert (clock.now, len(heard.requests)) == (begun, asked), "nothing is asked before its time"
    clock.now += webhook.LONGEST_PAUSE_S
    heard.answers = []
    sink.write(ROWS, step(repeated=True))
    assert heard.keys[asked:] == ["q-0-1-2", "q-0-2-3", "q-0-3-4"], "it goes on where it was"


def test_what_is_refused_for_good_is_kept_and_does_not_hold_up_the_rest(
    heard: Heard, open_: Callable[..., WebhookSink], tmp_path: Path
) -> None:
    heard.answers = [(200, {}), (400, {}), (200, {})]
    open_(batch=1, dead_letters=tmp_path / "dead", give_up_s=3600.0).write(ROWS, step())
    assert heard.keys == ["q-0-0-1", "q-0-1-2", "q-0-2-3", "q-0-3-4"]
    (letter,) = (tmp_path / "dead").iterdir()
    assert letter.name == "q-0-1-2.json"
    assert json.loads(letter.read_text()) == {
        "key": "q-0-1-2",
        "reason": "it answered 400",
        "body": {"query": "q", "rows": [{"auction": 2, "price": None, "channel": 'b"{'}]},
    }


def test_without_a_folder_for_it_nothing_is_given_up(
    heard: Heard, open_: Callable[..., WebhookSink], clock: Time
) -> None:
    heard.answers = [(400, {})] * 1000
    sink = open_()
    for _ in range(5):
        with pytest.raises(SinkError, match="it answered 400"):
            sink.write(ROWS, step())
        clock.now += 1e6
    heard.answers = []
    sink.write(ROWS, step())
    assert len({*heard.keys}) == 1


def test_who_is_away_for_too_long_is_given_up(
    heard: Heard, open_: Callable[..., WebhookSink], clock: Time, tmp_path: Path
) -> None:
    heard.answers = [(503, {})] * 1000
    sink = open_(dead_letters=tmp_path, give_up_s=600.0)
    with pytest.raises(SinkError):
        sink.write(ROWS, step())
    clock.now += 601
    sink.write(ROWS, step(repeated=True))
    assert len(list(tmp_path.iterdir())) == 1


def test_equal_alerts_are_sent_once_in_a_while(heard: Heard, open_: Callable[..., WebhookSink], clock: Time) -> None:
    sink = open_(same=("auction",), same_s=600.0, batch=2)
    sink.write(ROWS, step())
    assert [row["auction"] for row in heard.rows] == [1, 2, 3]
    sink.write(ROWS, step(1))
    assert len(heard.requests) == 2, "nobody is asked for nothing"
    clock.now += 601
    sink.write(ROWS, step(2))
    assert [row["auction"] for row in heard.rows] == [1, 2, 3] * 2


def test_an_alert_that_did_not_arrive_was_not_sent(
    heard: Heard, open_: Callable[..., WebhookSink], clock: Time
) -> None:
    sink = open_(same=("auction",), same_s=600.0)
    heard.answers = [(503, {})] * 100
    with pytest.raises(SinkError):
        sink.write(ROWS, step())
    heard.answers, clock.now = [], clock.now + 60
    sink.write(ROWS, step(repeated=True))
    assert [row["auction"] for row in heard.requests[-1][1]["rows"]] == [1, 2, 3]


def test_requests_keep_their_distance(heard: Heard, open_: Callable[..., WebhookSink], clock: Time) -> None:
    sink = open_(throttle_s=0.5, batch=2)
    sink.write(ROWS, step())
    assert clock.waited == [0.5]
    slow = open_(throttle_s=30.0, batch=2)
    with pytest.raises(SinkWaits) as pause:
        slow.write(ROWS, step(1))
    assert pause.value.seconds == pytest.approx(30.0)
    clock.now += 30
    slow.write(ROWS, step(1, repeated=True))
    assert heard.keys[2:] == ["q-1-0-2", "q-1-2-4"]


def test_a_receiver_that_hangs_is_not_waited_for(
    heard: Heard, open_: Callable[..., WebhookSink], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "ANSWER_S", 0.2)
    monkeypatch.setattr(webhook, "PATIENCE_S", 0.0)
    heard.hangs_s = 1.0
    with pytest.raises(SinkError, match="ReadTimeout"):
        open_().write(ROWS, step())


def test_nobody_there_is_said() -> None:
    with receiving() as gone:
        address = gone.address
    sink = WebhookSink(WebhookSettings(address, {}), *([time := Time()]), time.sleep)
    with pytest.raises(SinkError, match="ConnectError"):
        sink.write(ROWS, step())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"url": "ftp://h/x"}, "http:// or https://"),
        ({"url": "https://"}, "http:// or https://"),
        ({"url": "http://h:99999/"}, "http:// or https://"),
        ({"url": "https://me:secret@h/x"}, "do not belong into an address"),
        ({"url": "https://h/${NOT_SET_ANYWHERE}"}, "not in the environment: NOT_SET_ANYWHERE"),
        ({"headers": {"A": "${NOT_SET_ANYWHERE}"}}, "not in the environment: NOT_SET_ANYWHERE"),
        ({"headers": {"a b": "x"}}, 'not headers: "a b"'),
        ({"text": "{auction"}, "is not a text with columns"),
        ({"text": "{auction.real} {a!r} {b:>9} {}"}, 'not columns: "auction.real", "a!", "b:", ""'),
        ({"dedup": {"columns": [], "for": "1 s"}}, "at least 1"),
        ({"batch": 0}, "greater than or equal to 1"),
    ],
)
def test_bad_settings_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        WebhookSinkDef.model_validate({"type": "webhook", "url": "https://h/x", **keys})
    assert message in str(caught.value)
    assert "secret" not in caught.value.errors(include_input=False)[0]["msg"]


def test_what_the_journal_keeps_opens_the_same_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_PATH", "s3cret")
    said = {"type": "webhook", "url": "https://h/${HOOK_PATH}", "throttle": "2 s", "text": "{a}", "dead_letters": "/d"}
    defined = WebhookSinkDef.model_validate({**said, "dedup": {"columns": ["b"], "for": "10 minutes"}})
    assert defined.columns == {"a", "b"}
    record = defined.record()
    assert "s3cret" not in json.dumps(record) and all(isinstance(value, str) for value in record.values())
    sink = WebhookSinkDef.open(record)
    assert isinstance(sink, WebhookSink)
    url = "https://h/${HOOK_PATH}"
    assert sink._settings == WebhookSettings(url, {}, 100, "{a}", ("b",), 600.0, 2.0, Path("/d"), 3600.0)
    changed = WebhookSinkDef.model_validate({**said, "text": "{c}"}).record()
    assert WebhookSinkDef.identity(changed) == WebhookSinkDef.identity(record)


# --- a receiver that is killed ---------------------------------------------------------------------------------------

ALERTS, KILLS = 10_000, 10


@contextmanager
def receiver(port: int, file: Path, dies_after: int) -> Iterator[int]:
    command = [sys.executable, str(Path(__file__).with_name("receiver.py")), str(port), str(file), str(dies_after)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def test_ten_thousand_alerts_while_the_receiver_is_killed_ten_times(tmp_path: Path) -> None:
    """And the feeder starts anew, as after a crash of the job: none is lost, and equal keys have equal rows."""
    root, took, state = tmp_path / "results" / "carrier", tmp_path / "took.jsonl", tmp_path / "sinks" / "q.json"
    for number in range(20):
        write_batch(root, number, [Row(1, number, number * 500 + n) for n in range(500)])
    parts, port = [part(root, 1)], 0
    for kill in range(KILLS + 1):
        last = kill == KILLS
        with receiver(port, took, 0 if last else 18 + kill) as port:
            sink = WebhookSink(WebhookSettings(f"http://127.0.0.1:{port}/", {}, batch=50))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(webhook, "PATIENCE_S", 0.5)
                if last:
                    SinkFeeder("q", sink, state, ordered=True).feed(parts)
                else:
                    with pytest.raises(SinkError):
                        SinkFeeder("q", sink, state, ordered=True).feed(parts)
    lines = [json.loads(line) for line in took.read_text().splitlines()]
    rows = {line["key"]: [row["v"] for row in line["body"]["rows"]] for line in lines}
    assert all(rows[line["key"]] == [row["v"] for row in line["body"]["rows"]] for line in lines)
    assert Counter(v for some in rows.values() for v in some) == Counter(range(ALERTS))
    assert len(lines) > len(rows), "some came twice, under their key"
