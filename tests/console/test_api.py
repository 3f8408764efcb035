"""Requests made up from the service's own description of its API: all are answered in words, and none ends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from towpath.service.client import Client

from .conftest import MISSING
from .crowd import MIXED, Served, crowd

pytestmark = [pytest.mark.console, pytest.mark.timeout(300)]

EXAMPLES = 10  # of each operation, of requests as described; and as many of others
STREAM = "/console/events"  # does not end


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with crowd(tmp_path_factory.mktemp("crowd"), MIXED, every="1 second") as found:
        yield found


def test_no_request_is_too_odd(served: Served) -> None:
    try:
        import schemathesis
        from schemathesis import GenerationMode
    except ImportError:
        pytest.fail(f"schemathesis is not installed: {MISSING}")
    known = {"Authorization": f"Bearer {served.token}", "Origin": served.address}
    described = schemathesis.openapi.from_url(f"{served.address}/openapi.json", headers=known)
    answered: Counter[str] = Counter()
    for operation in (found.ok() for found in described.exclude(path=STREAM).get_all_operations()):
        asks_for_something = operation.body or operation.query
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)[: 2 if asks_for_something else 1]:
            _try_out(operation, operation.as_strategy(generation_mode=mode), known, answered)
    with Client(served.address, served.token) as client:
        assert {query.name for query in client.queries()} >= set(MIXED), "the loop goes on"
    assert answered["well"] > EXAMPLES and answered["refused"] > EXAMPLES


def _try_out(operation: Any, cases: Any, known: dict[str, str], answered: Counter[str]) -> None:
    from schemathesis.specs.openapi.checks import response_schema_conformance

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(case=cases)
    def ask(case: Any) -> None:
        answer = case.call(headers=known)
        assert answer.status_code < 500, f"{operation.label}: {answer.text}"
        assert "Traceback" not in answer.text
        case.validate_response(answer, checks=[response_schema_conformance])
        answered["well" if answer.status_code < 300 else "refused"] += 1

    ask()
