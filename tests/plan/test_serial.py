from __future__ import annotations

import datetime as dt
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.plan.constants import Value
from towpath.plan.serial import dump_template, dump_value, load_template, load_value
from towpath.plan.templates import merge_all, template_of

from .cases import workload

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.dates(),
    st.datetimes(timezones=st.just(dt.UTC)),
)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_a_template_comes_back_as_itself(seed: int) -> None:
    for template in merge_all(template_of(p) for p in workload(seed)):
        again = load_template(json.loads(json.dumps(dump_template(template))))
        assert again == template
        assert hash(again) == hash(template)


@given(values)
def test_a_value_comes_back_as_itself(value: Value | None) -> None:
    again = load_value(json.loads(json.dumps(dump_value(value))))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize("value", [-0.0, math.inf, -math.inf, 5e-324, math.nextafter(2.5, 3)])
def test_every_bit_of_a_double_survives(value: float) -> None:
    again = load_value(json.loads(json.dumps(dump_value(value))))
    assert isinstance(again, float)
    assert again.hex() == value.hex()
