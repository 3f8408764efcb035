"""Speaks to the service of a running job.

client = towpath.service.client.find("market.store")
client.submit({"hot": {"sql": "SELECT auction, price FROM bids WHERE price > 900"}})
print(client.status().queries)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx2
from pydantic import TypeAdapter, ValidationError

from towpath.api.figures import QueryCost
from towpath.errors import ServiceError
from towpath.service import service_file
from towpath.service.messages import (
    HistoryEntry,
    JobStatus,
    LookRequest,
    MoveStatus,
    NodeStatus,
    QueryStatus,
    load_error,
)
from towpath.store.layout import Store

CONNECT_S = 5.0
ANSWER_S = 90.0  # the service itself gives up earlier, and says why

T = TypeVar("T")


def find(store: str | Path) -> Client:
    """The client of the service that runs on a store. Raises ServiceError if there is none."""
    found = running_service(store)
    return Client(found.address, found.token)


def running_service(store: str | Path) -> service_file.ServiceAddress:
    """Where it listens, and who may ask. Raises ServiceError if there is none."""
    kept = Store(Path(store).absolute())
    found = service_file.read(kept.service)
    if found is None:
        raise ServiceError(f"{kept.root}: no service runs on this store\n    -> {_way_out(kept.owner())}")
    return found


def _way_out(owner: str | None) -> str:
    if owner is None:
        return "`towpath up JOB` starts one"
    return f"process {owner} runs the job: wait if it is starting; if it is `towpath run`, use `towpath up` instead"


class Client:
    def __init__(self, address: str, token: str, transport: httpx2.BaseTransport | None = None) -> None:
        _refuse_plain(address)
        self._address = address
        self._http = httpx2.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx2.Timeout(ANSWER_S, connect=CONNECT_S),
            transport=transport,
            trust_env=False,  # a proxy of the environment is not for what listens on this machine
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.close()

    def status(self) -> JobStatus:
        return self._get("/status", JobStatus)

    def queries(self) -> list[QueryStatus]:
        return self._get("/queries", list[QueryStatus])

    def costs(self) -> list[QueryCost]:
        """Of the queries that run, the one that takes most of the time first."""
        return self._get("/costs", list[QueryCost])

    def submit(self, queries: Mapping[str, Mapping[str, Any]], folder: Path | None = None) -> list[QueryStatus]:
        """Queries in the words of a job file in `folder`. Raises what is wrong with any; none is taken in then."""
        asked = {"queries": queries, "folder": str((folder or Path()).absolute())}
        return self._post("/queries", asked, list[QueryStatus])

    def withdraw(self, names: Sequence[str]) -> list[str]:
        return self._post("/withdraw", {"names": list(names)}, list[str])

    def migrate(self, subject: str, to: str | None = None, carriers: str | None = None) -> list[MoveStatus]:
        """Begins to move a query, or one fragment by its number: to a node, or to a kind of carrier where it is."""
        return self._post("/moves", {"subject": subject, "to": to, "carriers": carriers}, list[MoveStatus])

    def moves(self, numbers: Sequence[int]) -> list[MoveStatus]:
        return self._get("/moves", list[MoveStatus], {"number": list(numbers)})

    def drain(self, node: str, *, undo: bool = False) -> NodeStatus:
        return self._post("/drain", {"node": node, "undo": undo}, NodeStatus)

    def history(self, look: LookRequest | None = None) -> list[HistoryEntry]:
        wanted = {key: value for key, value in asdict(look or LookRequest()).items() if value is not None}
        return self._get("/history", list[HistoryEntry], wanted)

    def _get(self, path: str, kind: type[T], parameters: Mapping[str, Any] | None = None) -> T:
        return self._answer(self._http.build_request("GET", path, params=parameters), kind)

    def _post(self, path: str, body: Mapping[str, Any], kind: type[T]) -> T:
        return self._answer(self._http.build_request("POST", path, json=body), kind)

    def _answer(self, request: httpx2.Request, kind: type[T]) -> T:
        try:
            response = self._http.send(request)
            answer = response.json()
        except httpx2.ReadTimeout:
            raise ServiceError(f"{self._address}: no answer within {ANSWER_S:g} seconds; is it overloaded?") from None
        except httpx2.TransportError as error:
            raise ServiceError(f"{self._address}: the service does not answer: {error}") from error
        except ValueError as error:
            raise ServiceError(f"{self._address}: expected JSON from a service of towpath: {error}") from error
        if response.status_code == httpx2.codes.UNAUTHORIZED:
            raise ServiceError(f"{self._address}: refused the token; it changes whenever the service is started")
        if response.is_error:
            raise load_error(answer)
        try:
            return TypeAdapter(kind).validate_python(answer)
        except ValidationError as error:
            raise ServiceError(
                f"{self._address}: expected another answer; the service may be of another version of towpath"
            ) from error


def _refuse_plain(address: str) -> None:
    """A token that travels in the open is everybody's."""
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and service_file.is_loopback(parts.hostname or "")):
        return
    raise ServiceError(
        f"expected https://..., or http:// to this machine, got {address!r}\n"
        "    -> use TLS or an SSH tunnel to a service elsewhere; `towpath docs service` shows how"
    )
