"""An HTTP address as the sink of a query: rows go there as JSON, some in each request.

At least once: a request whose answer did not come is made again, under the same Idempotency-Key. The key says which
rows of which step it stands for, so a receiver that remembers keys takes each row once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

import pyarrow as pa
from pydantic import AfterValidator, Field

from towpath.config import environment
from towpath.config.settings import Duration, Location, Settings, Whole, listed, refusal, shown
from towpath.errors import SinkError
from towpath.results.render import json_rows
from towpath.results.sinks.base import Sink, SinkDef, SinkStep, SinkWaits
from towpath.store import durable

if TYPE_CHECKING:
    import httpx2

ANSWER_S = 10.0
PATIENCE_S = 10.0  # for which a request is tried again at once; then the others of the lane have their turn
SHORT_S = 1.0  # so long the sink waits itself until the next request is due
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 60.0
PASSING = {408, 425, 429}  # of the answers from 400 to 499, those that may be another one later
MOST_REMEMBERED = 1_000_000  # values of `dedup`
_Row = dict[str, Any]


@dataclass(frozen=True)
class WebhookSettings:
    url: str
    headers: Mapping[str, str]
    batch: int = 100
    text: str = ""
    same: tuple[str, ...] = ()
    same_s: float = 0.0
    throttle_s: float = 0.0
    dead_letters: Path | None = None
    give_up_s: float = 0.0

    @property
    def host(self) -> str:
        """All that a message may show of the address: many have their secret in the path."""
        return urlsplit(self.url).netloc


class WebhookSink:
    def __init__(
        self,
        settings: WebhookSettings,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._http: httpx2.Client | None = None
        self._step = ""
        self._done = 0  # rows of the step that are delivered
        self._due = 0.0  # when the next request may be made
        self._pause_s = 0.0  # after the next failure
        self._failing_since: float | None = None
        self._failure: SinkError | None = None  # until `_due`
        self._sent: dict[str, float] = {}  # by the values of `dedup`, when they were sent; the oldest first

    def write(self, table: pa.Table, step: SinkStep) -> None:
        if step.name != self._step:
            self._step, self._done = step.name, 0
        while self._done < table.num_rows:
            rows = table.slice(self._done, self._settings.batch)
            self._deliver(rows, step, self._done)
            self._done += rows.num_rows

    def _deliver(self, rows: pa.Table, step: SinkStep, first: int) -> None:
        key = f"{step.name}-{first}-{first + rows.num_rows}"
        fresh = list(self._fresh(rows))
        if not fresh:
            return
        body = self._body([row for _, row in fresh], step.query)
        given_up_at = self._clock() + PATIENCE_S
        while True:
            self._wait_turn()
            refused = self._request(body, key)
            if refused is None:
                break
            if self._is_dead(refused):
                self._bury(body, key, refused)
                break
            if self._due > given_up_at:
                self._failure = self._error(refused.reason)
                raise self._failure
        self._failing_since, self._failure, self._pause_s = None, None, 0.0
        if self._settings.same:
            self._sent |= dict.fromkeys((mark for mark, _ in fresh), self._clock())

    def _wait_turn(self) -> None:
        left = self._due - self._clock()
        if self._failure is not None and left > 0:
            raise self._failure  # it was said already, and nothing is tried before its time
        self._failure = None
        if left > SHORT_S and self._failing_since is None:
            raise SinkWaits(left)
        if left > 0:
            self._sleep(left)

    # --- what is sent ------------------------------------------------------------------------------------------------

    def _fresh(self, rows: pa.Table) -> Iterator[tuple[str, _Row]]:
        """Those that were not sent a short while ago, by the columns of `dedup`, and what is remembered of them."""
        settings, now = self._settings, self._clock()
        if not settings.same:
            yield from (("", row) for row in _rows(rows))
            return
        while self._sent and (len(self._sent) > MOST_REMEMBERED or self._oldest < now - settings.same_s):
            del self._sent[next(iter(self._sent))]
        seen: set[str] = set()
        for row in _rows(rows):
            mark = json.dumps([row.get(name) for name in settings.same])
            if mark not in seen and mark not in self._sent:
                seen.add(mark)
                yield mark, row

    @property
    def _oldest(self) -> float:
        return next(iter(self._sent.values()))

    def _body(self, rows: list[_Row], query: str) -> bytes:
        text = self._settings.text
        value: _Row = {"query": query, "rows": rows}
        if text:
            value = {"text": "\n".join(text.format_map({k: _readable(v) for k, v in row.items()}) for row in rows)}
        return json.dumps(value, ensure_ascii=False).encode()

    def _request(self, body: bytes, key: str) -> _Refused | None:
        """None if it was taken."""
        import httpx2

        self._due = self._clock() + self._settings.throttle_s
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        try:
            with self._client().stream("POST", self._address(), content=body, headers=headers) as answer:
                if answer.is_success:
                    return None
                refused = _Refused(f"it answered {answer.status_code}", answer.status_code, _asked_pause(answer))
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            refused = _Refused(f"{type(error).__name__}: {error}", 0, 0.0)
        now = self._clock()
        self._failing_since = now if self._failing_since is None else self._failing_since
        self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        self._due = max(self._due, now + max(self._pause_s, refused.pause_s))
        return refused

    def _client(self) -> httpx2.Client:
        import httpx2

        if self._http is None:
            headers = {name: self._revealed(value) for name, value in self._settings.headers.items()}
            self._http = httpx2.Client(headers={"User-Agent": "towpath", **headers}, timeout=ANSWER_S)
        return self._http

    def _address(self) -> str:
        return self._revealed(self._settings.url)

    def _revealed(self, text: str) -> str:
        if missing := environment.unset([text]):
            raise self._error(f"not in the environment: {listed(missing)}; set them, and start the job again")
        return environment.revealed(text)

    # --- what is not taken -------------------------------------------------------------------------------------------

    def _is_dead(self, refused: _Refused) -> bool:
        """Whether nobody is to be asked again: it was refused for good, or for too long."""
        if self._settings.dead_letters is None:
            return False
        since = self._failing_since
        return refused.for_good or (since is not None and self._clock() - since >= self._settings.give_up_s)

    def _bury(self, body: bytes, key: str, refused: _Refused) -> None:
        folder = self._settings.dead_letters
        assert folder is not None, "asked of sinks with a folder only"
        folder.mkdir(parents=True, exist_ok=True)
        letter = {"key": key, "reason": refused.reason, "body": json.loads(body)}
        with durable.writing(folder / f"{key}.json") as scratch:
            scratch.write_text(json.dumps(letter, ensure_ascii=False) + "\n", encoding="utf-8")

    def _error(self, reason: str) -> SinkError:
        return SinkError(
            f"the webhook at {self._settings.host} did not take results: {reason}\n"
            "    -> see to the receiver; the results are in the log, and are sent when it answers"
        )


@dataclass(frozen=True)
class _Refused:
    reason: str
    status: int  # 0: no answer came
    pause_s: float  # that the receiver asks for

    @property
    def for_good(self) -> bool:
        return 300 <= self.status < 500 and self.status not in PASSING


def _asked_pause(answer: httpx2.Response) -> float:
    with suppress(ValueError):
        return min(max(0.0, float(answer.headers.get("Retry-After", ""))), LONGEST_PAUSE_S)
    return 0.0


def _rows(table: pa.Table) -> Iterator[_Row]:
    return (dict(zip(table.column_names, values, strict=True)) for values in json_rows(table))


def _readable(value: object) -> str:
    return "NULL" if value is None else str(value)


# --- the job file ----------------------------------------------------------------------------------------------------


def _is_an_address(url: str) -> str:
    if missing := environment.unset([url]):
        raise refusal(f"not in the environment: {listed(missing)}", "set them where the job is started")
    try:
        parts = urlsplit(environment.revealed(url))
        whole = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        whole = False
    if not whole:
        raise refusal("expected an address that begins with http:// or https://", "write it like https://host/path")
    if "@" in parts.netloc:
        raise refusal("a name and a password do not belong into an address", "put them into headers: Authorization")
    return url


def _are_headers(headers: dict[str, str]) -> dict[str, str]:
    if missing := environment.unset(headers.values()):
        raise refusal(f"not in the environment: {listed(missing)}", "set them where the job is started")
    if strange := [n for n, v in headers.items() if not n.isascii() or not n.isprintable() or " " in n or "\n" in v]:
        hint = 'write {Authorization: "Bearer ${TOKEN}"}'
        raise refusal(f"not headers: {listed(map(shown, strange))}", hint)
    return headers


def _is_a_template(text: str) -> str:
    hint = 'write it like "{auction} at {price}"; {{ is a brace'
    try:
        names = _named(text)
    except ValueError as error:
        raise refusal(f"{shown(text)} is not a text with columns: {error}", hint) from None
    if strange := [name for name in names if not name or any(sign in name for sign in ".[!:")]:
        raise refusal(f"not columns: {listed(map(shown, strange))}", hint)
    return text


def _named(text: str) -> list[str]:
    parts = Formatter().parse(text)
    return [f"{name}{'!' if kind else ''}{':' if spec else ''}" for _, name, spec, kind in parts if name is not None]


Headers = Annotated[dict[str, str], AfterValidator(_are_headers)]
Positive = Annotated[Duration, Field(gt=0)]


class DedupDef(Settings):
    columns: Annotated[list[str], Field(min_length=1)] = Field(examples=["[auction]"])
    for_us: Positive = Field(alias="for", examples=["10 minutes"])


class WebhookSinkDef(SinkDef):
    type: Literal["webhook"]
    url: Annotated[str, AfterValidator(_is_an_address)] = Field(examples=["https://host/path"])
    headers: Headers = Field({}, examples=['{Authorization: "Bearer ${TOKEN}"}'])
    batch: Whole = Field(100, ge=1, le=10_000, examples=[100])  # rows of a request, at most
    text: Annotated[str, AfterValidator(_is_a_template)] = Field("", examples=['"auction {auction}: {price}"'])
    dedup: DedupDef | None = Field(None, examples=["{columns: [auction], for: 10 minutes}"])
    throttle_us: Duration = Field(0, alias="throttle", examples=["1 second"])
    dead_letters: Location | None = Field(None, examples=["./not-taken"])
    give_up_us: Positive = Field(3_600_000_000, alias="give_up_after", examples=["1 hour"])

    ordered: ClassVar[bool] = True
    folder_key: ClassVar[str] = "dead_letters"

    @property
    def folder(self) -> Path | None:
        return None if self.dead_letters is None else Path(self.dead_letters)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((*_named(self.text), *(self.dedup.columns if self.dedup else ())))

    def record(self) -> dict[str, str]:
        said = self.model_dump_json(exclude={"type", "url"}, by_alias=True)
        return {"type": self.type, "url": self.url, "settings": said}

    @classmethod
    def open(cls, record: Mapping[str, str]) -> Sink:
        said = json.loads(record["settings"])
        dedup = said["dedup"] or {"columns": (), "for": 0}
        return WebhookSink(
            WebhookSettings(
                record["url"],
                said["headers"],
                said["batch"],
                said["text"],
                tuple(dedup["columns"]),
                dedup["for"] / 1e6,
                said["throttle"] / 1e6,
                None if said["dead_letters"] is None else Path(said["dead_letters"]),
                said["give_up_after"] / 1e6,
            )
        )

    @classmethod
    def identity(cls, record: Mapping[str, str]) -> Mapping[str, str]:
        """How results go there may change."""
        return {key: record[key] for key in ("type", "url")}

    @classmethod
    def lane(cls, record: Mapping[str, str]) -> str:
        return f"{record['type']} {urlsplit(record['url']).netloc}"
