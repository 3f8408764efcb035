from __future__ import annotations

import pytest

from .cases import NAMES, explained, load, rewritten

REWRITES = load("rewrites.yaml")
PLANS = load("plans.yaml")


@pytest.mark.parametrize("case", REWRITES, ids=lambda case: f"{case['rewrite']}: {case['sql'][:60]}")
def test_a_rewrite(case: dict[str, str]) -> None:
    assert rewritten(case) == {"before": case["before"], "after": case["after"]}


def test_every_rewrite_has_a_case() -> None:
    assert {case["rewrite"] for case in REWRITES} == set(NAMES)


@pytest.mark.parametrize("case", PLANS, ids=lambda case: case["sql"][:60])
def test_a_plan_in_words(case: dict[str, str]) -> None:
    assert {"sql": case["sql"], **explained(case)} == case
