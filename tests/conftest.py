"""What holds for all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# No test asserts a time: on a busy machine an example that usually takes a millisecond takes a second now and then.
# A change is judged by the same examples every time (.ci/run); whoever runs the tests otherwise searches for others.
settings.register_profile("towpath", deadline=None, derandomize=os.environ.get("TOWPATH_EXAMPLES") == "fixed")
settings.load_profile("towpath")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that start Spark first: with several processes, what is short is left for the end."""
    slow = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in slow)
