"""A counter and the time at which it ticks, in the manner of Spark's rate source, but replayable and aligned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from towpath.streams.base import UTC_US, Arrivals, Generator, positions


@dataclass(frozen=True)
class Counter(Arrivals):
    schema = pa.schema([("value", pa.int64()), ("timestamp", UTC_US)])

    def batch(self, first: int, last: int) -> pa.RecordBatch:
        k = positions(first, last)
        columns = [pa.array(k.astype(np.int64)), pa.array(self.event_times(k), UTC_US)]
        return pa.record_batch(columns, schema=self.schema)


def counter(rate: float, start_us: int) -> Generator:
    return Counter("rate", rate, start_us, 0, None)
