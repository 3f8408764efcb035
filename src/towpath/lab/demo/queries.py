"""Standing queries of every kind over the market: few shapes, many constants, as many customers write them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from towpath.streams.auction import CATEGORIES, CHANNELS, CITIES, ITEMS

SEED = 7
REPEATED_EVERY = 25  # one query in so many asks exactly what an earlier one asks

Draw = Callable[[Random], object]

CONSTANTS: dict[str, Draw] = {
    "price": lambda rng: round(rng.uniform(1, 500), 2),
    "low": lambda rng: round(rng.uniform(1, 10), 2),
    "high": lambda rng: round(rng.uniform(800, 995), 2),
    "bound": lambda rng: round(rng.uniform(960, 1000), 2),
    "rate": lambda rng: round(rng.uniform(0.5, 1.5), 3),
    "reserve": lambda rng: round(rng.uniform(50, 900), 2),
    "channel": lambda rng: f"'{rng.choice(CHANNELS)}'",
    "item": lambda rng: f"'{rng.choice(ITEMS)}'",
    "state": lambda rng: f"'{rng.choice(sorted({state for _, state in CITIES}))}'",
    "category": lambda rng: rng.randrange(CATEGORIES),
    "rest": lambda rng: rng.randrange(50),
    "ending": lambda rng: f"'%{rng.randrange(10)}{rng.randrange(10)}'",
    "count": lambda rng: rng.randint(2, 40),
    "few": lambda rng: rng.randint(1, 5),
    "near": lambda rng: f"[RANGE {rng.choice((1, 2, 3, 4))} SECONDS]",
    "tumbling": lambda rng: f"[RANGE {rng.choice((5, 10, 15))} SECONDS]",
    "hopping": lambda rng: f"[RANGE {rng.choice((10, 20))} SECONDS SLIDE 5 SECONDS]",
}

# How many of a hundred queries are of a kind, and its shapes. Joins filter the rarer streams, so that all of one kind
# join in the same order and share a carrier.
KINDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "filter of bids": (
        30,
        (
            "SELECT auction, bidder, price FROM bids WHERE price > {high}",
            "SELECT auction, price FROM bids WHERE channel = {channel} AND price >= {high}",
            "SELECT auction, price * {rate} AS converted FROM bids "
            "WHERE channel IN ('web', {channel}) AND price > {high}",
            "SELECT bidder, price FROM bids WHERE bidder % 50 = {rest} AND price > {high}",
            "SELECT auction, price FROM bids WHERE url LIKE {ending} AND price BETWEEN {high} AND {bound}",
        ),
    ),
    "filter of auctions": (
        10,
        (
            "SELECT id, seller, reserve FROM auctions WHERE item = {item} AND reserve < {reserve}",
            "SELECT id, upper(item) AS item, reserve - initial_bid AS margin FROM auctions WHERE category = {category}",
        ),
    ),
    "tumbling aggregate": (
        15,
        (
            "SELECT channel, count(*) AS n, avg(price) AS mean FROM bids {tumbling} WHERE price > {price} "
            "GROUP BY channel",
            "SELECT auction, count(*) AS n, max(price) AS best FROM bids {tumbling} WHERE channel = {channel} "
            "GROUP BY auction HAVING count(*) > {count}",
            "SELECT window_end, sum(price) AS turnover FROM bids {tumbling} "
            "WHERE channel = {channel} AND price > {price}",
        ),
    ),
    "hopping aggregate": (
        15,
        (
            "SELECT channel, count(*) AS n, avg(price) AS mean FROM bids {hopping} WHERE price > {price} "
            "GROUP BY channel",
            "SELECT channel, sum(price) AS turnover, max(price) AS best FROM bids {hopping} WHERE price < {price} "
            "GROUP BY channel HAVING avg(price) > {few}",
        ),
    ),
    "2-way join": (
        10,
        (
            "SELECT b.auction, b.price, a.seller FROM bids {near} AS b, auctions {near} AS a "
            "WHERE b.auction = a.id AND a.item = {item} AND b.price > {high}",
            "SELECT a.id, a.item, b.bidder, b.price - a.initial_bid AS raised "
            "FROM auctions {near} AS a, bids {near} AS b WHERE a.id = b.auction AND a.category = {category} "
            "AND b.price > a.initial_bid AND b.price > {high}",
        ),
    ),
    "3-way join": (
        5,
        (
            "SELECT p.name, a.item, b.price FROM persons {near} AS p, auctions {near} AS a, bids {near} AS b "
            "WHERE a.seller = p.id AND b.auction = a.id AND p.state = {state} AND a.item = {item} "
            "AND b.price > {price}",
        ),
    ),
    "aggregate over a join": (
        5,
        (
            "SELECT a.item, count(*) AS n, max(b.price) AS best FROM bids [RANGE 4 SECONDS] AS b, "
            "auctions [RANGE 4 SECONDS] AS a WHERE b.auction = a.id AND a.category = {category} AND b.price > {price} "
            "GROUP BY a.item HAVING count(*) > {few}",
        ),
    ),
    "union": (
        10,
        (
            "SELECT auction AS id, price AS amount FROM bids WHERE price > {bound} "
            "UNION ALL SELECT id, reserve AS amount FROM auctions WHERE item = {item} AND reserve > {high}",
        ),
    ),
}

GREEDY = "SELECT auction, bidder, price FROM bids WHERE price > {low}"


class _Constants(dict[str, str]):
    """Draws a constant every time one is asked for."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self._rng = rng

    def __missing__(self, name: str) -> str:
        return str(CONSTANTS[name](self._rng))


def market_queries(count: int, seed: int = SEED) -> dict[str, str]:
    """So many queries under their names; always the same ones. Fewer queries are the first of more."""
    return {name: text for name, (_, text) in _drawn(count, seed).items()}


def kinds_of(count: int, seed: int = SEED) -> dict[str, str]:
    """The kind of each of these queries."""
    return {name: kind for name, (kind, _) in _drawn(count, seed).items()}


def greedy_queries(count: int, seed: int = SEED) -> dict[str, str]:
    """Filters that let nearly everything pass, of a shape that the market has already."""
    constants = _Constants(Random(seed))
    return {f"greedy{number:03}": GREEDY.format_map(constants) for number in range(1, count + 1)}


def _drawn(count: int, seed: int) -> dict[str, tuple[str, str]]:
    """Kind and text by name."""
    rng = Random(seed)
    constants = _Constants(rng)
    weights = [weight for weight, _ in KINDS.values()]
    # First one of each shape: whatever is submitted later finds a carrier that covers it.
    shapes = [(kind, shape) for kind, (_, shapes) in KINDS.items() for shape in shapes]
    made: list[tuple[str, str]] = []
    while len(made) < count:
        if len(made) % REPEATED_EVERY == REPEATED_EVERY - 1:
            made.append(rng.choice(made))
        else:
            drawn, (_, alike) = rng.choices(list(KINDS.items()), weights)[0]
            kind, shape = shapes.pop(0) if shapes else (drawn, rng.choice(alike))
            made.append((kind, shape.format_map(constants)))
    return {f"q{number:05}": one for number, one in enumerate(made, start=1)}
