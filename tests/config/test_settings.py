"""What is wrong with a value is said in words of our own, wherever the value stands."""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from towpath import job
from towpath.config import nodes, steering
from towpath.config.settings import Settings, problems
from towpath.problems import entries
from towpath.results import sinks
from towpath.streams import definition, sources

MODELS = {
    model: None
    for model in chain.from_iterable(
        vars(m).values() for m in (job, nodes, steering, entries, sinks, definition, sources)
    )
    if isinstance(model, type) and issubclass(model, Settings) and model.model_fields
}
INNER = (None, 1.5, math.nan, [], {}, 10**30)
VALUES: list[Any] = [
    *(None, True, 1, 0, -1, 1.5, math.nan, math.inf, 10**30, "", "x", "1", [], {}),
    *([value] for value in INNER),
    *({"a": value} for value in INNER),
]
PYDANTIC = ("another value", "Input should", "valid ", "function-", "[key]")


def mistakes(model: type[Settings], key: str, value: object) -> list[str]:
    kinds = {name: get_args(f.annotation)[0] for name, f in model.model_fields.items() if name == "type"}
    try:
        model.model_validate({**kinds, key: value}, context={"folder": Path()})
    except ValidationError as error:
        return [str(problem) for problem in problems(error, "", model, job.KINDS)]
    return []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_words_of_pydantic(model: type[Settings]) -> None:
    keys = [field.alias or name for name, field in model.model_fields.items()]
    texts = [text for key in keys for value in VALUES for text in mistakes(model, key, value)]
    assert not [text for text in texts if any(word in text for word in PYDANTIC)]
    assert not [text for text in texts if text.split(": ")[0].endswith((".str", ".int", ".float", ".bool"))]
