"""What notebooks show, and what libraries get."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from stores import make_store
from towpath import Frame, Reader, html
from towpath.placement.problem import Placement

FRAME = Frame("q", pa.table({"a<b": [1, None], "text": ["<script>", "x & y"]}))


def test_it_is_arrow_pandas_and_polars() -> None:
    import polars as pl

    assert FRAME.to_arrow().equals(FRAME.arrow)
    assert FRAME.to_pandas()["text"].tolist() == ["<script>", "x & y"]
    assert FRAME.to_polars().rows() == [(1, "<script>"), (None, "x & y")]
    assert pa.table(FRAME).equals(FRAME.arrow) and pl.DataFrame(FRAME).height == 2
    assert (len(FRAME), FRAME.columns, repr(FRAME)) == (2, ["a<b", "text"], "<q: 2 rows>")


def test_times_stay_times() -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    frame = Frame("q", pa.table({"t": pa.array([moment], pa.timestamp("us", "UTC"))}))
    assert frame.to_pandas()["t"][0] == moment == frame.to_polars()["t"][0]
    assert "2026-01-01T12:00:00.000000Z" in frame._repr_html_()


def test_nothing_of_a_row_is_taken_for_html() -> None:
    shown = FRAME._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "a&lt;b" in shown and "x &amp; y" in shown
    assert 'text-align: right">NULL' in shown
    assert shown.endswith("<p>q: 2 rows</p>")


@pytest.mark.parametrize(("rows", "shown"), [(0, 0), (1, 1), (15, 15), (20, 20), (21, 21), (1000, 21)])
def test_of_many_rows_it_shows_the_first_and_the_last(rows: int, shown: int) -> None:
    text = Frame("q", pa.table({"n": range(rows)}) if rows else pa.table({"n": pa.array([], pa.int64())}))._repr_html_()
    assert text.count("<tr>") == 1 + shown
    assert rows == 0 or f">{rows - 1}</td>" in text


def test_a_reader_gives_one(tmp_path: Path) -> None:
    frame = Reader(make_store(tmp_path / "store")).frame("since")
    assert (frame.name, len(frame)) == ("since", 4)


def test_a_placement_shows_what_each_node_runs() -> None:
    placement = Placement({"f1": ("left",), "f2": ("left", "right")}, {"big<": "no room"})
    shown = placement._repr_html_()
    assert "f1, f2" in shown and shown.index("left") < shown.index("right")
    assert "big&lt;" in shown and "no room" in shown
    crowded = Placement.single({f"f{n}": "left" for n in range(1000)})._repr_html_()
    assert "and 980 more" in crowded


def test_texts_keep_their_blanks() -> None:
    assert html.text("a&b", "x\n  <y>") == "<p><b>a&amp;b</b></p><pre>x\n  &lt;y&gt;</pre>"
