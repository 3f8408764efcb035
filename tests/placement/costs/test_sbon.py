from __future__ import annotations

from dataclasses import replace

import pytest

from figures import fig1, placed
from towpath.placement.costs.sbon import delay, delays, network_usage
from towpath.placement.problem import Placement, PlacementQuery

WITH_SINK = replace(fig1(), queries=(PlacementQuery("q", ("upper", "lower"), sink="n1"),))
APART = placed("upper:n1 lower:n2")


def test_network_usage() -> None:
    # o2 sends 1,000 bytes per second to n2, o5 sends 8,000 back to the sink, each over 10 ms.
    assert network_usage(fig1(), APART) == pytest.approx(10.0)
    assert network_usage(WITH_SINK, APART) == pytest.approx(10.0 + 80.0)
    # Only s2 has to travel.
    assert network_usage(WITH_SINK, placed("upper:n1 lower:n1")) == pytest.approx(10.0)


def test_delays_are_of_the_slowest_path() -> None:
    # s1 goes n1 -> n2 -> n1, s2 only n2 -> n1.
    assert delays(WITH_SINK, APART) == {"q": pytest.approx(0.02)}
    assert delay(WITH_SINK, APART) == pytest.approx(0.02)
    assert delay(fig1(), APART) == pytest.approx(0.01)
    assert delay(fig1(), Placement({}, {"q": "refused"})) == 0.0
