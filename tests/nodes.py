"""A node for tests of those who give nodes commands."""

from __future__ import annotations

from unittest.mock import MagicMock

from towpath.runtime.carriers import Runtime


def quiet_node() -> MagicMock:
    """It answers, does nothing, and has no news."""
    node = MagicMock(spec=Runtime)
    node.events.return_value = []
    node.lost = node.slow = None
    return node
