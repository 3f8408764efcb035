"""The list of queries: searched, filtered, sorted and cut into pages, so that ten thousand of them stay smooth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from pydantic import Field

from towpath.console.look import CarrierLook, QueryLook
from towpath.control.observe.measures import shares

MOST_ROWS = 500  # of a page
SHOWN = 90  # characters of SQL in the list

Order = Literal["name", "state", "rate", "delay", "pr", "cost", "kind", "node", "carrier"]


@dataclass(frozen=True, kw_only=True)
class QueryDetails(QueryLook):
    """A query with what was measured of it."""

    rate: float | None  # rows that it put out per second, about; None: nothing was measured yet
    delay_s: float | None  # of the slowest carrier
    pr: float | None  # performance ratio, of the worst carrier
    # About which part of the time the micro-batches of its carriers take for it; those who share a fragment have the
    # same cost, since it is there once.
    cost: float | None


@dataclass(frozen=True, kw_only=True)
class Listed(QueryDetails):
    words: str = field(repr=False, compare=False)  # in which is searched

    @property
    def details(self) -> QueryDetails:
        return QueryDetails(**{shown.name: getattr(self, shown.name) for shown in fields(QueryDetails)})


@dataclass(frozen=True)
class ListRequest:
    search: Annotated[str, Field(max_length=1000)] = ""
    state: Annotated[str, Field(max_length=100)] = ""
    node: Annotated[str, Field(max_length=250)] = ""
    carrier: Annotated[str, Field(max_length=250)] = ""
    order: Order = "name"
    descending: bool = False
    offset: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, Field(ge=0, le=MOST_ROWS)] = 100


@dataclass(frozen=True)
class QueryRow:
    """A query in the list."""

    name: str
    state: str
    sql: str  # its beginning, on one line
    nodes: list[str]
    carriers: list[str]
    kinds: list[str]
    shared_with: int
    rate: float | None
    delay_s: float | None
    pr: float | None
    cost: float | None


@dataclass(frozen=True)
class QueryPage:
    total: int  # that match
    of: int  # that there are
    offset: int
    rows: list[QueryRow]
    states: dict[str, int]  # how many there are in each, whatever was searched


def listed(queries: Iterable[QueryLook], carriers: Iterable[CarrierLook], rates: Mapping[int, float]) -> list[Listed]:
    queries, known = list(queries), {carrier.id: carrier for carrier in carriers}
    costs = _costs(queries, known, rates)
    return [_listed(query, known, rates, costs) for query in queries]


def _listed(
    query: QueryLook, known: Mapping[str, CarrierLook], rates: Mapping[int, float], costs: Mapping[int, float]
) -> Listed:
    carriers = [known[carrier] for carrier in query.carriers if carrier in known]
    measured = any(carrier.delay_s is not None for carrier in carriers)
    return Listed(
        **vars(query),
        rate=sum(rates.get(fragment, 0.0) for fragment in query.fragments) if measured else None,
        delay_s=max((c.delay_s for c in carriers if c.delay_s is not None), default=None),
        pr=max((c.pr for c in carriers if c.pr is not None), default=None),
        cost=sum(costs.get(fragment, 0.0) for fragment in query.fragments) if measured else None,
        words=f"{query.name} {query.sql}".casefold(),
    )


def _costs(
    queries: Iterable[QueryLook], carriers: Mapping[str, CarrierLook], rates: Mapping[int, float]
) -> dict[int, float]:
    """Of fragments, as the control loop estimates them: what a carrier takes, split by the rows that each puts out."""
    inside: dict[str, dict[int, float]] = {}
    for query in queries:
        for fragment, seat in zip(query.fragments, query.seats, strict=True):
            inside.setdefault(seat, {})[fragment] = rates.get(fragment, 0.0)
    found: dict[int, float] = {}
    for seat, put_out in inside.items():
        carrier = carriers.get(seat)
        if carrier is None or carrier.load is None:
            continue
        read = carrier.rows_per_s
        split = shares({fragment: rate / read if read else 0.0 for fragment, rate in put_out.items()})
        found |= {fragment: carrier.load * share for fragment, share in split.items()}
    return found


def page(queries: list[Listed], asked: ListRequest) -> QueryPage:
    states: dict[str, int] = {}
    for query in queries:
        states[_group(query)] = states.get(_group(query), 0) + 1
    words = asked.search.casefold().split()
    found = [query for query in queries if _matches(query, asked, words)]
    found.sort(key=lambda query: query.name)
    if asked.order != "name" or asked.descending:
        found.sort(key=lambda query: _key(query, asked.order), reverse=asked.descending)
    rows = [_row(query) for query in found[asked.offset : asked.offset + asked.limit]]
    return QueryPage(len(found), len(queries), asked.offset, rows, dict(sorted(states.items())))


def _group(query: QueryLook) -> str:
    """`catching up 43%` is one state, however far."""
    return "catching up" if query.state.startswith("catching up") else query.state


def _matches(query: Listed, asked: ListRequest, words: list[str]) -> bool:
    return (
        (not asked.state or _group(query) == asked.state)
        and (not asked.node or asked.node in query.nodes)
        and (not asked.carrier or asked.carrier in query.carriers)
        and all(word in query.words for word in words)
    )


def _key(query: Listed, order: Order) -> tuple[float, str] | str:
    match order:
        case "rate":
            return (-1.0 if query.rate is None else query.rate, "")
        case "delay":
            return (-1.0 if query.delay_s is None else query.delay_s, "")
        case "pr":
            return (-1.0 if query.pr is None else query.pr, "")
        case "cost":
            return (-1.0 if query.cost is None else query.cost, "")
        case "kind":
            return ", ".join(query.kinds)
        case "state":
            return query.state
        case "node":
            return ", ".join(query.nodes)
        case "carrier":
            return ", ".join(query.carriers)
        case _:
            return query.name


def _row(query: Listed) -> QueryRow:
    text = " ".join(query.sql[: 4 * SHOWN].split())
    sql = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    return QueryRow(
        query.name,
        query.state,
        sql,
        query.nodes,
        query.carriers,
        query.kinds,
        query.shared_with,
        query.rate,
        query.delay_s,
        query.pr,
        query.cost,
    )
