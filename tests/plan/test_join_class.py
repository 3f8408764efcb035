"""Join classes: which joins are of one class, and what their tuples are looked up by."""

from __future__ import annotations

from towpath.lang import parse
from towpath.plan.cut import plan
from towpath.plan.join_class import JoinClass, join_class, key_columns, partner_bit, reach
from towpath.plan.pipeline import Pipeline
from towpath.plan.slots import column_types
from towpath.schema import Column, Stream, Type

SECOND = 1_000_000
COLUMNS = tuple(Column(f"{type_.value}_{n}", type_) for type_ in Type for n in range(4))
CATALOG = {name: Stream(name, (*COLUMNS, Column("at", Type.TIMESTAMP)), "at") for name in ("s", "t")}


def joined(
    on: str, left: str = "s [RANGE 2 SECONDS]", right: str = "t [RANGE 3 SECONDS]", items: str = "a.at"
) -> Pipeline:
    (found,) = plan(parse(f"SELECT {items} FROM {left} a, {right} b WHERE {on}", CATALOG), CATALOG).pipelines
    return found


def test_keys_and_magnitude_make_a_class_and_nothing_else_does() -> None:
    first = join_class(joined("a.int_0 = b.int_1"))
    assert first == JoinClass(((("i0", "int_1"), ("i1", "int_0")),), 5 * SECOND)
    same = joined("b.int_1 = a.int_0 AND b.double_0 > 3 AND b.double_0 < a.double_1", items="b.double_0, a.int_2")
    assert join_class(same) == join_class(joined("a.int_0 = b.int_1", "s [RANGE 5 SECONDS]", "t [RANGE 1 MS]")) == first
    assert join_class(joined("a.int_1 = b.int_0", "t [RANGE 2 SECONDS]")) == first  # of t alone
    others = [
        joined("a.int_0 = b.int_1", "s [RANGE 5001 MS]"),
        joined("a.int_0 = b.int_0"),
        joined("a.int_0 = b.int_1 AND a.int_0 = b.int_0"),
    ]
    assert len({join_class(p).number for p in (same, *others)}) == 4


def test_a_class_has_the_same_number_for_ever() -> None:
    """Tuples that a checkpoint holds are found by it."""
    assert join_class(joined("a.int_0 = b.int_1")).number == -2811431025652233812


def test_a_stream_has_the_same_bit_for_ever() -> None:
    """Tuples in a checkpoint are kept with those of their partners."""
    assert [partner_bit(name) for name in ("s", "t")] == [1 << 30, 1 << 22]
    signs = {partner_bit(f"s{n}") for n in range(2_000)}
    assert signs == {1 << n for n in range(63)} | {-(1 << 63)}


def test_magnitudes() -> None:
    lengths = {1: 5, 5 * SECOND: 5, 5 * SECOND + 1: 20, 20 * SECOND: 20, 60 * SECOND: 80, 3600 * SECOND: 5120}
    assert {us: reach(us) // SECOND for us in lengths} == lengths


def test_keys_have_columns_by_what_they_are_compared_as() -> None:
    on = "a.int_0 = b.bigint_0 AND a.date_0 = b.date_0 AND a.double_0 = b.double_0 AND a.string_0 = b.string_1"
    made = joined(on)
    found = {name: (key, type_) for name, key, type_ in key_columns(made.keys, column_types(made))}
    assert found == {
        "k_l0": ((("i0", "date_0"), ("i1", "date_0")), Type.BIGINT),
        "k_l1": ((("i0", "int_0"), ("i1", "bigint_0")), Type.BIGINT),
        "k_d0": ((("i0", "double_0"), ("i1", "double_0")), Type.DOUBLE),
        "k_s0": ((("i0", "string_0"), ("i1", "string_1")), Type.STRING),
    }


def test_what_has_no_column_or_no_common_form_is_left_to_the_comparison_of_pairs() -> None:
    ties = " AND ".join(f"a.double_{n} = b.double_{n}" for n in range(3))
    made = joined(f"{ties} AND a.int_0 = b.double_0 AND a.int_1 = b.int_1")
    names = [name for name, _, _ in key_columns(made.keys, column_types(made))]
    assert len(made.keys) == 5 and sorted(names) == ["k_d0", "k_l0"]
