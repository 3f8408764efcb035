from __future__ import annotations

from towpath.lab.reproduce.sbon.table1 import SIZES, Table1Case, measure


def test_what_table1_measures_of_algorithms_that_are_known_by_hand() -> None:
    seen = measure(Table1Case(SIZES["tiny"], 3))
    assert seen.usage["optimal"] == 0
    assert min(seen.usage.values()) == 0, "nothing is below the optimum"
    assert abs(seen.delay["consumer"]) < 1e-3, "tuples go straight to the consumer"
    assert abs(seen.delay["ip_multicast"]) < 1e-3, "tuples stay on their routes"
