"""Nodes at universities on three continents, as far from each other as light in fibre and some detours make them.

For what SBON tried on PlanetLab (sections 4.2 and 4.3), whose latencies the paper does not give.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from towpath.config.settings import Number, Settings, Whole
from towpath.placement.cluster import Cluster, Network, Node
from towpath.problems.units import Seconds

WEST, MIDDLE, EAST, EUROPE, ASIA = "us-west", "us-middle", "us-east", "europe", "asia"
# By city: its region, latitude and longitude.
CITIES: dict[str, tuple[str, float, float]] = {
    "Berkeley": (WEST, 37.9, -122.3),
    "Davis": (WEST, 38.5, -121.7),
    "Eugene": (WEST, 44.0, -123.1),
    "Los Angeles": (WEST, 34.1, -118.2),
    "Salt Lake City": (WEST, 40.8, -111.9),
    "San Diego": (WEST, 32.7, -117.2),
    "Santa Cruz": (WEST, 37.0, -122.0),
    "Seattle": (WEST, 47.6, -122.3),
    "Austin": (MIDDLE, 30.3, -97.7),
    "Boulder": (MIDDLE, 40.0, -105.3),
    "Chicago": (MIDDLE, 41.9, -87.6),
    "Houston": (MIDDLE, 29.8, -95.4),
    "Madison": (MIDDLE, 43.1, -89.4),
    "St. Louis": (MIDDLE, 38.6, -90.2),
    "Ann Arbor": (EAST, 42.3, -83.7),
    "Atlanta": (EAST, 33.7, -84.4),
    "Boston": (EAST, 42.4, -71.1),
    "Durham": (EAST, 36.0, -78.9),
    "Ithaca": (EAST, 42.4, -76.5),
    "New York": (EAST, 40.7, -74.0),
    "Pittsburgh": (EAST, 40.4, -80.0),
    "Princeton": (EAST, 40.3, -74.7),
    "Toronto": (EAST, 43.7, -79.4),
    "Washington": (EAST, 38.9, -77.0),
    "Barcelona": (EUROPE, 41.4, 2.2),
    "Berlin": (EUROPE, 52.5, 13.4),
    "Cambridge": (EUROPE, 52.2, 0.1),
    "Copenhagen": (EUROPE, 55.7, 12.6),
    "Lausanne": (EUROPE, 46.5, 6.6),
    "Paris": (EUROPE, 48.9, 2.4),
    "Pisa": (EUROPE, 43.7, 10.4),
    "Stockholm": (EUROPE, 59.3, 18.1),
    "Beijing": (ASIA, 39.9, 116.4),
    "Seoul": (ASIA, 37.6, 127.0),
    "Taipei": (ASIA, 25.0, 121.5),
    "Tokyo": (ASIA, 35.7, 139.7),
}
EARTH_KM = 6_371.0
FIBRE_KM_PER_S = 200_000.0  # two thirds of the speed of light


class Geography(Settings):
    """Ways are longer than the great circle by a factor of their own, so that the triangle inequality does not hold.

    Its spread is such that Vivaldi's coordinates are as good as the paper says: a median error of 9 to 11%.
    """

    nodes: Whole = Field(130, ge=1)  # in random cities, several in one of them
    detour: Number = Field(1.6, ge=1)  # the median of how much longer ways are
    detour_spread: Number = Field(0.1, ge=0)  # of its logarithm
    access: Seconds = Field(0.001, ge=0)  # the median of what a node's own line adds
    access_spread: Number = Field(0.5, ge=0)  # of its logarithm
    cpu: Number = Field(1.0, gt=0)


def geography(parameters: Geography | None = None, seed: int = 0, cities: Sequence[str] | None = None) -> Cluster:
    """In these cities if they are given, else in as many random ones as `nodes` says."""
    p = parameters or Geography()
    rng = np.random.default_rng([seed, 3])
    if cities is None:
        cities = [list(CITIES)[n] for n in rng.integers(len(CITIES), size=p.nodes)]
    count = len(cities)
    detour = np.triu(p.detour * np.exp(rng.normal(0.0, p.detour_spread, (count, count))), 1)
    access = p.access * np.exp(rng.normal(0.0, p.access_spread, count))
    seconds = _kilometres(cities) * (detour + detour.T) / FIBRE_KM_PER_S + access[:, None] + access[None]
    np.fill_diagonal(seconds, 0.0)
    nodes = tuple(
        Node(f"n{n}", p.cpu, properties={"city": city, "region": CITIES[city][0]}) for n, city in enumerate(cities, 1)
    )
    return Cluster(nodes, Network(latencies=seconds.astype(np.float32)))


def _kilometres(cities: Sequence[str]) -> NDArray[np.float64]:
    """Along great circles."""
    latitude, longitude = np.radians([CITIES[city][1:] for city in cities]).T
    north = np.sin((latitude[:, None] - latitude) / 2) ** 2
    east = np.cos(latitude[:, None]) * np.cos(latitude) * np.sin((longitude[:, None] - longitude) / 2) ** 2
    return np.asarray(2 * EARTH_KM * np.arcsin(np.sqrt(north + east)))
