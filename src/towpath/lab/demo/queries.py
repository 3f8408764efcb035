"""Standing queries over the market, of dozens of shapes with many constants, as many customers write them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from towpath.streams.auction import CATEGORIES, CHANNELS, ITEMS

SEED = 7
REPEATED_EVERY = 25  # one query in so many asks exactly what an earlier one asks

Draw = Callable[[Random], object]

CONSTANTS: dict[str, Draw] = {
    "price": lambda rng: round(rng.uniform(1, 500), 2),
    "low": lambda rng: round(rng.uniform(1, 10), 2),
    "high": lambda rng: round(rng.uniform(800, 995), 2),
    "bound": lambda rng: round(rng.uniform(980, 1000), 2),
    "rate": lambda rng: round(rng.uniform(0.5, 1.5), 3),
    "channel": lambda rng: f"'{rng.choice(CHANNELS)}'",
    "item": lambda rng: f"'{rng.choice(ITEMS)}'",
    "category": lambda rng: rng.randrange(CATEGORIES),
    "rest": lambda rng: rng.randrange(100),
    "ending": lambda rng: f"'%{rng.randrange(10)}{rng.randrange(10)}'",
    "few": lambda rng: rng.randint(1, 5),
    "near": lambda rng: f"[RANGE {rng.choice((1, 2, 3, 4))} SECONDS]",
    "tumbling": lambda rng: f"[RANGE {rng.choice((5, 10, 15))} SECONDS]",
    "hopping": lambda rng: f"[RANGE {rng.choice((10, 20))} SECONDS SLIDE 5 SECONDS]",
}

# What shapes are made of. Each condition takes a few bids in a thousand.
BIDS = (
    "price > {bound}",
    "channel = {channel} AND price >= {bound}",
    "bidder % 100 = {rest} AND price > {high}",
    "url LIKE {ending} AND price > {high}",
    "auction % 100 IN ({rest}, {rest}) AND price > {high}",
    "price * {rate} > 995 AND bidder % 100 < 5",
    "channel IN ('phone', {channel}) AND price BETWEEN {bound} AND 999",
    "floor(price) % 100 = {rest} AND price > {high}",
)
ITEMS_OF_BIDS = (
    "auction, bidder, price",
    "auction, price * {rate} AS converted",
    "bidder, round(price / {rate}, 1) AS rounded",
    "auction, upper(channel) AS channel, price",
)
OVER = ("price > {high}", "channel = {channel} AND price > {price}", "bidder % 100 = {rest}")
AGGREGATES = (
    ("channel, count(*) AS n, avg(price) AS mean", " GROUP BY channel"),
    ("count(*) AS n, max(price) AS best", ""),
    ("window_end, sum(price) AS turnover", ""),
    ("auction % 10 AS lot, count(*) AS n", " GROUP BY auction % 10 HAVING count(*) > {few}"),
)
PAIRS = (
    "a.item = {item} AND b.price > {high}",
    "a.category = {category} AND b.price > {high}",
)
ITEMS_OF_PAIRS = (
    "b.auction, b.price, a.seller",
    "a.id, a.item, b.bidder, b.price - a.initial_bid AS raised",
    "a.id, upper(a.item) AS item, b.price * {rate} AS converted",
    "a.seller, b.bidder, round(b.price / a.initial_bid, 2) AS times",
)


def _aggregates(window: str) -> tuple[str, ...]:
    return tuple(f"SELECT {items} FROM bids {window} WHERE {over}{rest}" for over in OVER for items, rest in AGGREGATES)


# How many of a hundred queries are of a kind, and its shapes.
KINDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "filter of bids": (
        40,
        tuple(f"SELECT {items} FROM bids WHERE {taken}" for taken in BIDS for items in ITEMS_OF_BIDS),
    ),
    "tumbling aggregate": (20, _aggregates("{tumbling}")),
    "hopping aggregate": (15, _aggregates("{hopping}")),
    "2-way join": (
        15,
        tuple(
            f"SELECT {items} FROM bids {{near}} AS b, auctions {{near}} AS a WHERE b.auction = a.id AND {pairs}"
            for pairs in PAIRS
            for items in ITEMS_OF_PAIRS
        ),
    ),
    "union": (
        10,
        (
            "SELECT auction, price FROM bids WHERE price > {bound} AND channel = 'web' "
            "UNION ALL SELECT auction, price FROM bids WHERE url LIKE {ending} AND price > {bound}",
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
    # First one of each shape, so that few queries have all of them.
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
