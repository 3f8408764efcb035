from __future__ import annotations

import pytest
from sqlglot import exp

from towpath.plan.pipeline import Slot
from towpath.schema import Type
from towpath.spark.carrier import SOME, TemplateCompiler


@pytest.mark.parametrize("type_", Type)
def test_every_type_has_a_literal(type_: Type) -> None:
    slot = Slot(exp.Parameter(this=exp.Literal.number(0)), type_, (type_,))
    assert set(SOME) == set(Type)
    assert TemplateCompiler({}, "x", {}).type_of(slot.expr, slot) is type_


def test_a_list_of_constants_has_a_type() -> None:
    member = exp.In(
        this=exp.column("k", table="i0", quoted=True), expressions=[exp.Parameter(this=exp.Literal.number(0))]
    )
    slot = Slot(member, Type.BOOLEAN, (Type.BIGINT,))
    assert TemplateCompiler({("i0", "k"): Type.INT}, "x", {}).type_of(member, slot) is Type.BOOLEAN
