"""Generators: pure functions of seed and position, disordered no more than they say, full of join partners."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from towpath.streams.base import Generator
from towpath.streams.registry import generator

START_US = 1_767_225_600_000_000
COMMON = {"rate": 5000.0, "seed": 7, "start_us": START_US, "disorder_us": 0, "rows": None}
TABLES = {"persons": 100.0, "auctions": 300.0, "bids": 4600.0}
STREAMS: dict[str, dict[str, Any]] = {
    **{table: {**COMMON, "type": "auction", "table": table} for table in TABLES},
    "sensor": {**COMMON, "type": "traffic", "sensor": 3, "sensors": 96},
}


def make(stream: str, **changes: Any) -> Generator:
    return generator({**STREAMS[stream], **changes})


def numbers(batch: pa.RecordBatch, column: str) -> npt.NDArray[Any]:
    values = batch.column(column)
    return values.cast(pa.int64()).to_numpy() if pa.types.is_timestamp(values.type) else values.to_numpy()


@pytest.mark.parametrize("stream", STREAMS)
class TestEveryGenerator:
    def test_pieces_equal_the_whole(self, stream: str) -> None:
        g = make(stream, disorder_us=50_000)
        pieces = pa.Table.from_batches([g.batch(0, 40), g.batch(40, 40), g.batch(40, 100)])
        assert pieces.equals(pa.Table.from_batches([g.batch(0, 100)]))

    def test_same_after_json(self, stream: str) -> None:
        again = generator(json.loads(json.dumps(STREAMS[stream])))
        assert again.batch(5, 50).equals(make(stream).batch(5, 50))

    def test_another_seed_gives_other_rows(self, stream: str) -> None:
        assert not make(stream, seed=8).batch(0, 100).equals(make(stream).batch(0, 100))

    def test_rows_have_the_schema_and_no_nulls(self, stream: str) -> None:
        g = make(stream)
        batch = g.batch(0, 1000)
        assert batch.schema.equals(g.schema)
        assert all(field.nullable for field in g.schema)
        assert g.schema.field("at").type == pa.timestamp("us", tz="UTC")
        assert [column.null_count for column in batch.columns] == [0] * batch.num_columns

    def test_event_times_follow_the_rate(self, stream: str) -> None:
        g = make(stream)
        at = numbers(g.batch(0, 1000), "at")
        np.testing.assert_array_equal(at, START_US + np.floor(np.arange(1000) * (1e6 / g.rate)).astype(np.int64))

    def test_disorder_is_bounded_and_used(self, stream: str) -> None:
        in_order = numbers(make(stream).batch(0, 5000), "at")
        late = in_order - numbers(make(stream, disorder_us=200_000).batch(0, 5000), "at")
        assert late.min() >= 0
        assert late.max() <= 200_000
        assert 90_000 < late.mean() < 110_000

    def test_rows_arrive_at_the_rate_until_the_last(self, stream: str) -> None:
        g = make(stream)
        assert [g.count_until(us) for us in (-1, 0)] == [0, 0]
        assert g.count_until(96_000_000) == round(96 * g.rate)
        assert make(stream, rows=10).count_until(96_000_000) == 10

    def test_a_row_has_arrived_only_after_its_event_time(self, stream: str) -> None:
        g = make(stream)
        count = g.count_until(1_234_567)
        assert numbers(g.batch(count - 1, count), "at")[0] <= START_US + 1_234_567

    def test_far_rows_cost_no_more(self, stream: str) -> None:
        assert make(stream).batch(10**12, 10**12 + 3).num_rows == 3


@pytest.mark.parametrize(("table", "rate"), TABLES.items())
def test_tables_share_the_rate_of_the_market(table: str, rate: float) -> None:
    assert make(table).rate == pytest.approx(rate)


@pytest.mark.parametrize("rate", [10.0, 500.0, 5000.0])
@pytest.mark.parametrize(
    ("stream", "key", "other"),
    [("bids", "auction", "auctions"), ("bids", "bidder", "persons"), ("auctions", "seller", "persons")],
)
def test_references_are_to_recent_rows(stream: str, key: str, other: str, rate: float) -> None:
    referring, referred = make(stream, rate=rate), make(other, rate=rate)
    first = referring.count_until(60_000_000)
    batch = referring.batch(first, first + 5000)
    ids, at = numbers(batch, key), numbers(batch, "at")
    born = START_US + np.floor(ids * (1e6 / referred.rate)).astype(np.int64)
    assert (born <= at + 1).all()  # both are rounded down to a microsecond
    assert ids.min() >= 0
    assert np.mean(at - born <= 10_000_000) > 0.5


def test_first_references_exist() -> None:
    assert numbers(make("bids").batch(0, 1), "auction")[0] == 0
    assert numbers(make("auctions").batch(0, 1), "seller")[0] == 0


def test_some_auctions_are_hot() -> None:
    _, counts = np.unique(numbers(make("bids").batch(0, 46_000), "auction"), return_counts=True)
    assert counts.max() > 10 * np.median(counts)


def test_prices_and_channels_are_skewed() -> None:
    batch = make("bids").batch(0, 20_000)
    prices = numbers(batch, "price")
    assert prices.min() >= 1
    assert prices.max() < 1001
    assert 110 < np.median(prices) < 140
    assert 0.47 < pc.mean(pc.equal(batch.column("channel"), "web")).as_py() < 0.53


def test_auctions_expire_after_they_open() -> None:
    batch = make("auctions").batch(0, 5000)
    open_for = numbers(batch, "expires") - numbers(batch, "at")
    assert open_for.min() >= 2_000_000
    assert open_for.max() < 20_000_000
    assert (numbers(batch, "reserve") > numbers(batch, "initial_bid")).all()


def test_sensors_share_the_rate() -> None:
    assert sum(make("sensor", sensor=n).rate for n in range(1, 97)) == pytest.approx(5000)


def test_two_sensors_see_the_same_cars_within_seconds() -> None:
    one, two = (make("sensor", sensor=n).batch(1000, 3000) for n in (1, 2))
    joined = pa.Table.from_batches([one]).join(
        pa.Table.from_batches([two]), "car_id", join_type="inner", right_suffix="_2"
    )
    apart = np.abs(joined["at"].cast(pa.int64()).to_numpy() - joined["at_2"].cast(pa.int64()).to_numpy())
    assert joined.num_rows > 1000
    assert apart.max() <= 5_000_000
    assert (apart <= 2_000_000).sum() > 500
    assert pc.all(pc.equal(joined["type"], joined["type_2"])).as_py()


def test_sensors_differ() -> None:
    one, two = (make("sensor", sensor=n).batch(0, 100) for n in (1, 2))
    assert not one.column("car_id").equals(two.column("car_id"))


def test_kinds_of_cars_are_skewed() -> None:
    batch = make("sensor").batch(0, 20_000)
    assert 0.77 < pc.mean(pc.equal(batch.column("type"), "Car")).as_py() < 0.83
    assert set(batch.column("lane").to_pylist()) == {1, 2, 3, 4}
    assert numbers(batch, "mph").min() >= 25
    assert numbers(batch, "mph").max() <= 80


def test_a_counter_ticks_at_its_rate() -> None:
    made = generator({"type": "rate", "rate": 4, "start_us": 1_000_000})
    assert made.count_until(2_000_000) == 8
    assert made.batch(2, 4).to_pydict()["value"] == [2, 3]
    assert [t.timestamp() for t in made.batch(2, 4).to_pydict()["timestamp"]] == [1.5, 1.75]
