from __future__ import annotations

from pathlib import Path

import pytest

from towpath.api.steering import places_of
from towpath.cli.check import kind
from towpath.control.decide.controller import Controller
from towpath.control.decide.requests import planned, request_of, take_in
from towpath.control.state.records import State
from towpath.job import QueryDef
from towpath.lab.demo import FEWEST
from towpath.lab.demo.market import CHANGED_SHARE, NODES, RUSHED, Market
from towpath.lab.demo.queries import market_queries
from towpath.lang import parse
from towpath.plan.build import build, optimise
from towpath.plan.pipeline import Pipeline, pipelines
from towpath.plan.templates import template_of


def drawn(market: Market, names: list[str]) -> list[Pipeline]:
    catalog = market.job(Path("store"), 2).catalog
    queries = [parse(market.queries[name], catalog, name) for name in names]
    return [p for query in queries for p in pipelines(optimise(build(query), catalog), catalog)]


def test_the_queries_are_always_the_same_and_fewer_are_the_first_of_more() -> None:
    more = market_queries(200)
    assert list(market_queries(50).items()) == list(more.items())[:50]


@pytest.mark.parametrize("count", [FEWEST, 300])
def test_all_kinds_are_there(count: int) -> None:
    market = Market.of(count, 10)
    catalog = market.job(Path("store"), 2).catalog
    found = {kind(parse(sql, catalog, name)) for name, sql in market.queries.items()}
    assert found == {"filter", "aggregate", "join", "union"}


def test_there_are_dozens_of_shapes_and_few_queries_have_all_of_them() -> None:
    market = Market.of(FEWEST, 10)
    shapes = {template_of(p) for p in drawn(market, list(market.queries))}
    assert len(shapes) >= 60
    assert {template_of(p) for p in drawn(Market.of(400, 10), list(Market.of(400, 10).queries))} == shapes


def test_some_queries_are_repeated() -> None:
    texts = list(market_queries(300).values())
    assert len(set(texts)) < len(texts)


@pytest.mark.parametrize("count", [FEWEST, 300])
def test_few_carriers_run_them_and_those_that_come_later_need_no_other(count: int) -> None:
    market = Market.of(count, 10)
    job = market.job(Path("store"), 2)
    controller = Controller(State(), job.catalog, list(job.nodes), places_of(job))
    rush = {name: {"sql": sql, "node": RUSHED} for name, sql in market.rush.items()}
    later = {name: {"sql": market.queries[name]} for name in market.late_queries} | rush
    for queries in (job.queries, {name: QueryDef.model_validate(query) for name, query in later.items()}):
        asked = [request_of(parse(q.sql or "", job.catalog, name), q, job.fragments) for name, q in queries.items()]
        take_in(planned(asked, controller, job.catalog), controller)
        kinds = sorted((c.node, c.template.family.kind) for c in controller.state.carriers.values())
        assert kinds == [
            ("left", "universal filter"),
            ("middle", "universal aggregate"),
            ("middle", "universal filter"),
            ("right", "universal 2-way join"),
            ("right", "universal filter"),
        ]


@pytest.mark.parametrize("count", [FEWEST, 49, 1000])
def test_queries_come_and_go(count: int) -> None:
    market = Market.of(count, 10)
    assert len(market.queries) + len(market.rush) == count
    assert len(market.late_queries) == len(market.leaving_queries) == max(1, len(market.queries) // CHANGED_SHARE)
    assert not set(market.late_queries) & set(market.leaving_queries)
    assert set(market.job(Path("store"), 2).queries) == set(market.queries) - set(market.late_queries)


@pytest.mark.parametrize("count", [FEWEST, 1000])
def test_every_node_begins_with_kinds_of_its_own_and_with_filters(count: int) -> None:
    job = Market.of(count, 10).job(Path("store"), 2)
    catalog = job.catalog
    kinds: dict[str, set[str]] = {node: set() for node in NODES}
    for name, query in job.queries.items():
        assert query.node is not None
        kinds[query.node].add(kind(parse(query.sql, catalog, name)))
    assert kinds == {
        "left": {"filter", "union"},
        "middle": {"filter", "aggregate"},
        "right": {"filter", "join"},
    }
