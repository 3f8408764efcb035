"""The experiments on nodes that are unevenly far apart: what they ask, what they make of what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from towpath.api.checking import parse_all
from towpath.config.nodes import EmbeddedNode
from towpath.lab.reproduce import get, silent
from towpath.lab.reproduce.live import hummer, sbon, sqpr
from towpath.lab.reproduce.live.apart import DISTANCES, ENTRIES, ApartOutcome, ApartPlan, Seen, followed, job, sql
from towpath.lab.reproduce.live.nodes import Machines
from towpath.spark import server

PLAN = ApartPlan(queries=60, shared=10)
SEEN = Seen(
    predicted_usage=100.0,
    usage=110.0,
    predicted_delay=0.02,
    delay=5.0,
    duplicated=0.0,
    buffering=0.0,
    state_rows=100.0,
)


class Places(Machines):
    def definitions(self, names: object) -> dict[str, EmbeddedNode]:  # type: ignore[override]
        return {n: EmbeddedNode.model_validate({"type": "embedded", "cores": 1}) for n in ("n1", "n2", "n3")}


def test_queries_of_a_pair_differ_and_some_have_a_join_in_common(tmp_path: Path) -> None:
    queries = sql(PLAN)
    assert len(set(queries.values())) == PLAN.queries
    made = parse_all(job(Places({}, tmp_path), tmp_path, queries, {}, cut=True))
    assert set(made) == set(queries)
    joins = {text.partition("WHERE")[2].partition("GROUP")[0] for text in queries.values()}
    assert len(joins) == PLAN.queries / PLAN.shared
    assert {text.split("FROM ")[1][0] for name, text in queries.items() if name in followed(queries)} == {"a", "b", "c"}


def test_streams_enter_at_different_nodes_whose_distances_are_injected(tmp_path: Path) -> None:
    made = job(Places({}, tmp_path), tmp_path, {}, {}, cut=True)
    assert {name: stream.node for name, stream in made.streams.items()} == ENTRIES
    assert made.inject and made.distances == DISTANCES


def outcome(seen: Seen, **changed: object) -> ApartOutcome:
    return replace(ApartOutcome([seen, seen], admitted=PLAN.queries), **changed)  # type: ignore[arg-type]


def test_placing_by_distance_is_better_when_all_is_better() -> None:
    near, dealt = SEEN, replace(SEEN, usage=220.0, predicted_usage=200.0, delay=6.0)
    found = sbon.report({"relaxation": outcome(near), "round robin": outcome(dealt)}, PLAN, "default")
    assert [s.holds for s in found.statements] == [True] * 5
    assert [s.ours for s in found.statements] == [0.5, 1.1, 1.0, PLAN.queries, 0]


def test_each_statement_of_placing_by_distance_can_be_false() -> None:
    near = outcome(replace(SEEN, usage=300.0, delay=9.0), admitted=59, wrong=("q1",))
    found = sbon.report({"relaxation": near, "round robin": outcome(replace(SEEN, usage=200.0))}, PLAN, "default")
    assert [s.holds for s in found.statements] == [False] * 5


def test_each_statement_of_gathering_can_be_true_and_false() -> None:
    spread = replace(SEEN, duplicated=4.0, buffering=4.0, state_rows=300.0)
    good = hummer.report(outcome(spread), outcome(SEEN), 30.0, PLAN)
    assert [s.holds for s in good.statements] == [True] * 4
    bad = hummer.report(outcome(SEEN), outcome(spread, wrong=("q1",)), 90.0, PLAN)
    assert [s.holds for s in bad.statements] == [False] * 4


def test_each_statement_of_admission_can_be_true_and_false() -> None:
    cheap, dear = outcome(SEEN), outcome(replace(SEEN, usage=220.0, predicted_usage=200.0, delay=6.0), admitted=50)
    good = sqpr.report({"sqpr": admitted(cheap), "round robin": admitted(dear)}, PLAN)
    assert [s.holds for s in good.statements] == [True] * 5
    assert [s.ours for s in good.statements] == pytest.approx([60 / 50, 1 - (110 / 60) / (220 / 50), 1.1, 1.0, 0])
    worse = outcome(replace(SEEN, usage=300.0, delay=9.0), admitted=40, wrong=("q1",))
    better = outcome(replace(SEEN, usage=220.0), admitted=50)
    bad = sqpr.report({"sqpr": admitted(worse), "round robin": admitted(better)}, PLAN)
    assert [s.holds for s in bad.statements] == [False] * 5


def admitted(found: ApartOutcome) -> sqpr.Submitted:
    return sqpr.Submitted(found, PLAN.queries - found.admitted, (0.1, 0.2, 0.4))


@pytest.mark.spark
@pytest.mark.live
@pytest.mark.long
@pytest.mark.parametrize("name", ["sbon-live", "hummer-live", "sqpr-live"])
def test_answers_on_nodes_far_apart_are_those_of_duckdb(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    wrong = [s for s in get(name)("tiny", [0, 1], silent).statements if "DuckDB" in s.claim]
    assert [s.holds for s in wrong] == [True]
    assert server.servers() == {}
