from __future__ import annotations

import pytest

from towpath.plan.estimate import rate

from .cases import CATALOG, planned

RATES = {
    "SELECT price FROM bids": 1000,
    "SELECT price FROM bids WHERE lane = 3": 100,
    "SELECT price FROM bids WHERE price > 3 AND price < 5": 1000 / 9,
    "SELECT price FROM bids WHERE lane IN (1, 2, 3)": 300,
    "SELECT price FROM bids WHERE lane IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)": 1000,
    "SELECT price FROM bids WHERE channel LIKE 'a%'": 500,
    "SELECT price FROM bids UNION ALL SELECT reserve FROM auctions": 1100,
    "SELECT count(*) AS n FROM bids [RANGE 10 SECONDS SLIDE 5 SECONDS]": 1 / 5,
    "SELECT count(*) AS n FROM bids [RANGE 10 SECONDS] GROUP BY lane": 1,
    "SELECT count(*) AS n FROM persons [RANGE 1 SECOND] WHERE city = 'x' GROUP BY name": 1,
}
JOIN = "SELECT b.price FROM bids [RANGE {} SECONDS] b, auctions [RANGE 2 SECONDS] a WHERE b.auction = a.id"


@pytest.mark.parametrize("sql", RATES)
def test_rates(sql: str) -> None:
    assert rate(planned(sql), CATALOG) == pytest.approx(RATES[sql])


def test_a_join_grows_with_its_window_and_shrinks_with_its_conditions() -> None:
    short, long = (rate(planned(JOIN.format(seconds)), CATALOG) for seconds in (4, 8))
    assert long == pytest.approx(2 * short)
    for condition in (" AND b.price > 5", " AND b.price > a.reserve"):
        assert rate(planned(JOIN.format(4) + condition), CATALOG) == pytest.approx(short / 3)
