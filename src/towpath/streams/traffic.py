"""Cars that pass road sensors, as in the example of D-CAPE: one stream per sensor.

In every interval between two rows of a sensor one car enters the road, and each sensor sees it about once within
the next seconds. So a join on car_id between any two sensors finds about one partner per row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from towpath.streams.base import UTC_US, Arrivals, Generator, choose, positions, uniform

ON_THE_ROAD_S = 5
TYPES, TYPE_WEIGHTS = ("Car", "Truck", "Bus", "Motorcycle"), (80, 12, 5, 3)
LANES = 4


@dataclass(frozen=True)
class Sensor(Arrivals):
    seed: int  # of the cars, which all sensors see alike; `key` is of what this sensor sees of them

    schema = pa.schema(
        [
            ("car_id", pa.int64()),
            ("type", pa.string()),
            ("mph", pa.float64()),
            ("lane", pa.int32()),
            ("at", UTC_US),
        ]
    )

    def batch(self, first: int, last: int) -> pa.RecordBatch:
        k = positions(first, last)
        on_the_road = np.uint64(max(1, int(ON_THE_ROAD_S * self.rate)))
        cars = k + on_the_road - np.uint64(1) - self.noise("car", k) % on_the_road
        cruising = 30 + 45 * uniform(f"{self.seed}/mph", cars)
        mph = cruising + 10 * (self.uniform("mph", k) - 0.5)
        columns = [
            pa.array(cars.astype(np.int64)),
            choose(TYPES, TYPE_WEIGHTS, uniform(f"{self.seed}/type", cars)),
            pa.array(np.floor(10 * mph) / 10),
            pa.array((self.noise("lane", k) % np.uint64(LANES)).astype(np.int32) + 1, pa.int32()),
            pa.array(self.event_times(k), UTC_US),
        ]
        return pa.record_batch(columns, schema=self.schema)


def traffic(
    sensor: int, sensors: int, rate: float, seed: int, start_us: int, disorder_us: int, rows: int | None
) -> Generator:
    """One of `sensors` sensors that have `rate` rows per second together."""
    return Sensor(f"{seed}/sensor {sensor}", rate / sensors, start_us, disorder_us, rows, seed)
