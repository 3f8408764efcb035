"""Several copies of a fragment: whoever reads gets every row once, as soon as any copy has it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.results import Part, Position, batches, compact, read

from .logs import Row, part, values, write_batch

ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=12)  # time and value, some of them equal


def copies(folder: Path, number: int, **more: object) -> list[Part]:
    return [part(folder / f"c{n}", n + 1, copy=n, **more) for n in range(number)]


def cut(rows: list[tuple[int, int]], pieces: int, seed: int) -> list[list[tuple[int, int]]]:
    """The same rows in another order, in so many micro-batches."""
    rng = Random(seed)
    shuffled = rng.sample(rows, len(rows))
    found: list[list[tuple[int, int]]] = [[] for _ in range(pieces)]
    for row in shuffled:
        found[rng.randrange(pieces)].append(row)
    return found


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, number=st.integers(2, 3), seed=st.integers(0, 10**6), compacted=st.booleans(), data=st.data())
def test_every_row_is_given_once(
    rows: list[tuple[int, int]], number: int, seed: int, compacted: bool, data: st.DataObject
) -> None:
    with TemporaryDirectory() as name:
        parts = copies(Path(name), number)
        written = [Counter[tuple[int, int]]() for _ in parts]
        waiting = [list(enumerate(cut(rows, 4, seed + n))) for n in range(number)]
        given_out: Counter[int] = Counter()
        position = Position()
        while any(waiting):
            which = data.draw(st.sampled_from([n for n in range(number) if waiting[n]]))
            batch, some = waiting[which].pop(0)
            write_batch(parts[which].root, batch, [Row(which + 1, time=10 * t, v=v) for t, v in some])
            written[which].update(some)
            if compacted and batch == 3:
                compact(parts[which].root, min_batches=1)
            if data.draw(st.booleans()):
                for chunk in batches(parts, position):
                    given_out.update(values(chunk.table))
                    position = chunk.position
                best = Counter[tuple[int, int]]()
                for one in written:
                    best |= one
                assert given_out == Counter(v for _, v in best.elements())
        for chunk in batches(parts, position):
            given_out.update(values(chunk.table))
        assert given_out == Counter(v for _, v in rows)
        assert Counter(values(read(parts))) == given_out


def test_a_copy_that_stops_leaves_no_gap(tmp_path: Path) -> None:
    parts = copies(tmp_path, 2)
    write_batch(parts[0].root, 0, [Row(1, time=10, v=1)])
    write_batch(parts[1].root, 0, [Row(2, time=10, v=1)])
    (first,) = batches(parts, Position())
    write_batch(parts[1].root, 1, [Row(2, time=20, v=2)])
    (second,) = batches(parts, first.position)
    assert (values(first.table), values(second.table)) == ([1], [2])


def test_a_row_that_was_given_before_a_fence_was_set_is_not_given_by_the_other_copy(tmp_path: Path) -> None:
    one, other = copies(tmp_path, 2)
    write_batch(one.root, 0, [Row(1, time=10, v=1)])
    (first,) = batches([one, other], Position())
    assert values(first.table) == [1]
    write_batch(other.root, 0, [Row(2, time=10, v=1), Row(2, time=20, v=2)])
    now = [replace(one, pending_fence_us=0), other]
    assert [v for chunk in batches(now, first.position) for v in values(chunk.table)] == [2]


def test_windows_are_the_same_by_their_time_and_groups_whatever_their_sums(tmp_path: Path) -> None:
    """Fractions are added up in another order in another copy."""
    write_batch(tmp_path / "c0", 0, [Row(1, time=10, v=7)])
    write_batch(tmp_path / "c1", 0, [Row(2, time=10, v=8), Row(2, time=20, v=9)])
    assert values(read(copies(tmp_path, 2, windowed=True))) == [7, 9]
    assert sorted(values(read(copies(tmp_path, 2, windowed=True, keys=("s",))))) == [7, 8, 9]


def test_selects_of_a_union_are_not_copies_of_each_other(tmp_path: Path) -> None:
    one, other = part(tmp_path / "a", 1, select=0), part(tmp_path / "b", 1, select=1)
    for root in (one.root, other.root):
        write_batch(root, 0, [Row(1, time=10, v=1)])
    assert values(read([one, other])) == [1, 1]
