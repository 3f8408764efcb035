"""Which watermark the micro-batch that runs now has, as its checkpoint says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from towpath.spark.cuts import watermark_ms


def begin(folder: Path, batch: int, watermark: int) -> None:
    """As Spark writes it: a version, what concerns the batch, and the position of each source."""
    said = {"batchWatermarkMs": watermark, "batchTimestampMs": 5, "conf": {}}
    (folder / str(batch)).write_text(f"v1\n{json.dumps(said)}\n" + '{"logOffset":1}')
    (folder / f".{batch}.crc").write_bytes(b"crc")


@pytest.mark.parametrize(
    ("batches", "expected"),
    [({}, 0), ({0: 0}, 0), ({0: 0, 1: 700}, 700), ({8: 800, 9: 900, 10: 1000}, 1000), ({99: 1, 100: 2, 101: 3}, 3)],
)
def test_it_is_that_of_the_newest_batch(tmp_path: Path, batches: Mapping[int, int], expected: int) -> None:
    for number, watermark in batches.items():
        begin(tmp_path, number, watermark)
    assert watermark_ms(str(tmp_path)) == expected
