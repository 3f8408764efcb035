from __future__ import annotations

import math

import pytest
from pydantic_core import PydanticCustomError

from towpath.problems import units


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4 ms", 0.004),
        ("80us", 80e-6),
        ("80 µs", 80e-6),
        ("10 ns", 1e-8),
        ("2 s", 2.0),
        ("1.5 seconds", 1.5),
        ("2 min", 120.0),
        ("1 hour", 3600.0),
        (".5 s", 0.5),
        ("1e-3 s", 0.001),
        (0.25, 0.25),
        (3, 3.0),
        (2e-05, 2e-05),
        ("7", 7.0),
    ],
)
def test_seconds(text: object, seconds: float) -> None:
    assert units.seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100 B", 100),
        ("2 KB", 2_000),
        ("2 kB", 2_000),
        ("3 MB", 3e6),
        ("2 GB", 2e9),
        ("1 TB", 1e12),
        ("1 KiB", 1024),
        ("512 MiB", 512 * 1024**2),
        ("1 GiB", 1024**3),
        (100, 100),
        ("unlimited", math.inf),
    ],
)
def test_sizes(text: object, size: float) -> None:
    assert units.size(text) == size


@pytest.mark.parametrize(
    ("text", "bytes_per_second"),
    [
        ("8 bps", 1),
        ("8 kbps", 1_000),
        ("100 Mbps", 12.5e6),
        ("100 mbps", 12.5e6),
        ("1 Gbps", 125e6),
        ("2 KB/s", 2_000),
        ("10 MB/s", 10e6),
        ("1 KiB/s", 1024),
        (5, 5),
        ("unlimited", math.inf),
    ],
)
def test_bandwidths(text: object, bytes_per_second: float) -> None:
    assert units.bandwidth(text) == bytes_per_second


@pytest.mark.parametrize("text", ["", "fast", "-4 ms", "4 parsecs", "4 4 ms", True, None, "1e999", [1], "ms", "4 MS"])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(PydanticCustomError, match="expected a duration"):
        units.seconds(text)


@pytest.mark.parametrize("text", ["100 mb", "100 MBps", "100 Mb", "2 GB"])
def test_a_bandwidth_is_not_guessed(text: str) -> None:
    with pytest.raises(PydanticCustomError, match="is no unit of it"):
        units.bandwidth(text)
