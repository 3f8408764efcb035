"""Links give every row of a derived stream once, in order of time, whoever made it and however often it is read."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from towpath.results import compact
from towpath.results.links import (
    Link,
    LinkFeed,
    LinkIndex,
    LinkPosition,
    Turn,
    low_water,
    mark,
    read_link,
)
from towpath.schema import BEFORE_1970_US, BEFORE_ALL_US
from towpath.streams.portions import MOST_ROWS

from .logs import TIME, Row, write_batch

MS = 1000
SPAN, DELAY = 40 * MS, 25 * MS  # of a result: from its earliest tuple to its latest; and how late a row may come
SCHEMA = pa.schema([("result_time", TIME), ("v0", pa.int64())])


class Carrier:
    """What a carrier leaves on disk: batches of its log, and the watermark committed with each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.batch = 0
        self.newest = 0

    def run(self, rows: list[Row], until: int) -> None:
        write_batch(self.root / "e0" / "results", self.batch, rows)
        self.newest = max(self.newest, until)
        commits = self.root / "e0" / "checkpoint" / "commits"
        commits.mkdir(parents=True, exist_ok=True)
        watermark = (self.newest - DELAY + BEFORE_1970_US) // MS if self.newest > DELAY else 0
        (commits / str(self.batch)).write_text(f"v1\n{json.dumps({'nextBatchWatermarkMs': watermark})}")
        self.batch += 1

    def turn(self, fragment: int) -> Turn:
        return Turn(str(self.root), fragment, ("v",), windowed=False, span_us=SPAN)


def feed(folder: Path, most_rows: int = MOST_ROWS) -> LinkFeed:
    schema = SCHEMA.serialize().to_pybytes().hex()
    places = {"folder": str(folder / "links"), "index": str(folder / "files")}
    spec = {**places, "schema": schema, "time": "result_time", "most_rows": most_rows}
    return LinkFeed(spec)


def rows_between(reader: LinkFeed, start: LinkPosition, end: LinkPosition) -> list[tuple[str, int, int]]:
    """Stream, time and value of every row."""
    batches = [batch for piece in reader.slices(start, end) for batch in reader.read(piece)]
    found = []
    for batch in batches:
        times = batch["result_time"].cast(pa.int64()).to_pylist()
        found += zip(batch["_stream"].to_pylist(), times, batch["v0"].to_pylist(), strict=True)
    return sorted(found)


class World:
    """Two links and two carriers, each at its own pace; everything that flows is known beforehand."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = Random(seed)
        self.folder = folder
        self.carriers = [Carrier(folder / f"c{n}") for n in range(2)]
        self.truth = [
            (name, time, max(1, time - self.rng.randrange(SPAN)), n)
            for n in range(60)
            for name in ("a", "b")
            for time in [MS * 10 + n * 5 * MS + self.rng.randrange(5 * MS)]
        ]
        # In the order of their arrival, which is not that of their times.
        self.arriving = sorted(self.truth, key=lambda row: row[1] + self.rng.randrange(DELAY - MS))
        self.read = [0, 0]  # how many of those each carrier has read
        self.places = {"a": [(0, 1)], "b": [(1, 2)]}  # carrier and fragment of each turn
        self.links = {
            name: Link(name, number, True, (self.carriers[number].turn(number + 1),))
            for number, name in enumerate(("a", "b"))
        }
        self.fragments = 2
        self.publish()

    @property
    def flows(self) -> bool:
        return min(self.read) < len(self.arriving)

    def publish(self) -> None:
        for link in self.links.values():
            link.write(self.folder / "links")

    def flow(self) -> None:
        """A carrier reads the next rows; it makes the links whose fragments it has, of all turns."""
        number = self.rng.randrange(2)
        first = self.read[number]
        self.read[number] = min(len(self.arriving), first + self.rng.randrange(1, 12))
        now = self.arriving[first : self.read[number]]
        made = [
            Row(fragment, time, value, born)
            for name, time, born, value in now
            for where, fragment in self.places[name]
            if where == number
        ]
        self.carriers[number].run(made, max((row[1] for row in now), default=0))

    def move(self) -> None:
        """The next step of moving a link: a fence ahead of all that was read, or the decision that it is passed."""
        name = self.rng.choice("ab")
        link = self.links[name]
        *before, last = link.turns
        if last.pending_fence_us is not None:
            there, fragment = self.places[name][-1]
            begin = max(last.pending_fence_us, last.from_us or last.pending_fence_us)
            after = replace(self.carriers[there].turn(fragment), from_us=begin)
            turns = (*before, replace(last, pending_fence_us=None, handed_over_us=last.pending_fence_us), after)
        else:
            there = 1 - self.places[name][-1][0]
            self.fragments += 1
            self.places[name].append((there, self.fragments))
            fence = max(c.newest for c in self.carriers) + SPAN + self.rng.randrange(1, 20 * MS)
            turns = (*before, replace(last, pending_fence_us=fence))
        self.links[name] = replace(link, turns=turns)
        self.publish()

    def end(self) -> None:
        while self.flows:
            self.flow()
        for name, link in self.links.items():
            if link.turns[-1].pending_fence_us is not None:  # the move is taken back
                self.links[name] = replace(
                    link, turns=(*link.turns[:-1], replace(link.turns[-1], pending_fence_us=None))
                )
        self.publish()
        for carrier in self.carriers:
            carrier.run([], 10_000 * MS)

    def compact(self) -> None:
        for carrier in self.carriers:
            compact(carrier.root, min_batches=1)


@pytest.mark.parametrize("seed", range(10))
def test_every_row_once_whatever_happens(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    reader, position = feed(tmp_path), LinkPosition()
    given: list[tuple[str, int, int]] = []

    def read_on() -> None:
        nonlocal reader, position
        target = reader.advance(position)
        rows = rows_between(reader, position, target)
        assert all(position.released_us < time <= target.released_us for _, time, _ in rows), "nothing is late"
        if world.rng.random() < 0.3:
            world.compact()
        if world.rng.random() < 0.3:
            reader = feed(tmp_path)  # the node was lost and another one repeats the micro-batch
            assert rows_between(reader, position, target) == rows
        given.extend(rows)
        position = target

    while world.flows:
        step = world.rng.choice((world.flow, world.flow, world.flow, read_on, read_on, world.move, world.compact))
        step()
    world.end()
    read_on()
    expected = Counter((name, time, value) for name, time, _, value in world.truth)
    assert Counter(given) == expected


def test_nothing_is_released_before_all_links_that_are_there_have_begun(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    world.carriers[0].run([Row(1, 5 * MS, 7, 1)], 50 * MS)
    reader = feed(tmp_path)
    assert reader.advance(LinkPosition()) == LinkPosition()
    world.carriers[1].run([], 40 * MS)
    position = reader.advance(LinkPosition())
    assert position == LinkPosition(2, 15 * MS - 1)
    assert rows_between(reader, LinkPosition(), position) == [("a", 5 * MS, 7)]


def test_a_link_that_comes_later_counts_from_what_was_released(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    late = world.links.pop("b")
    (tmp_path / "links" / "b.json").unlink()
    for fragment, carrier in enumerate(world.carriers, start=1):
        carrier.run([Row(fragment, 30 * MS, 1, 1)], 100 * MS)
    reader = feed(tmp_path)
    first = reader.advance(LinkPosition())
    assert first == LinkPosition(1, 75 * MS - 1)
    late.write(tmp_path / "links")
    for fragment, carrier in enumerate(world.carriers, start=1):
        carrier.run([Row(fragment, 80 * MS, 2, 1)], 200 * MS)
    second = reader.advance(first)
    assert rows_between(reader, first, second) == [("a", 80 * MS, 2), ("b", 80 * MS, 2)]
    assert [(j.name, j.after_us) for j in LinkIndex(tmp_path / "files").joined()] == [
        ("a", BEFORE_ALL_US),
        ("b", first.released_us),
    ]


def test_one_that_is_far_behind_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    late = world.links.pop("b")
    (tmp_path / "links" / "b.json").unlink()
    world.carriers[0].run([], 100_000 * MS)
    world.carriers[1].run([], 100 * MS)
    reader = feed(tmp_path)
    first = reader.advance(LinkPosition())
    late.write(tmp_path / "links")
    world.carriers[0].run([], 200_000 * MS)
    assert reader.advance(first) == LinkPosition(1, 199_975 * MS - 1)


def test_a_link_that_is_gone_holds_nobody_back(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    for carrier in world.carriers:
        carrier.run([], 100 * MS)
    reader = feed(tmp_path)
    first = reader.advance(LinkPosition())
    (tmp_path / "links" / "b.json").unlink()
    world.carriers[0].run([], 500 * MS)
    assert reader.advance(first).released_us == 475 * MS - 1


def test_a_fence_that_is_not_decided_is_not_passed(tmp_path: Path) -> None:
    carrier = Carrier(tmp_path / "c0")
    carrier.run([], 1000 * MS)
    turn = carrier.turn(1)
    assert mark(Link("a", 1, True, (turn,))) == 975 * MS - 1
    assert mark(Link("a", 1, True, (replace(turn, pending_fence_us=500 * MS),))) == 500 * MS - 1


def test_who_has_handed_over_is_waited_for_until_its_last_pairs_are_out(tmp_path: Path) -> None:
    before, now = Carrier(tmp_path / "c0"), Carrier(tmp_path / "c1")
    fence = 500 * MS
    link = Link("a", 1, True, (replace(before.turn(1), handed_over_us=fence), replace(now.turn(2), from_us=fence)))
    now.run([], 1000 * MS)
    before.run([], 555 * MS)
    assert mark(link) == 530 * MS - 1, "a pair that begins just before the fence comes up to 40 ms later"
    before.run([], 566 * MS)
    assert mark(link) == 975 * MS - 1


def test_windows_are_out_one_batch_after_their_watermark(tmp_path: Path) -> None:
    carrier = Carrier(tmp_path / "c0")
    assert low_water(carrier.root, windowed=True) is None
    carrier.run([], 100 * MS)
    assert low_water(carrier.root, windowed=True) is None
    carrier.run([], 200 * MS)
    assert low_water(carrier.root, windowed=True) == 75 * MS - 1
    assert low_water(carrier.root, windowed=False) == 175 * MS - 1


def test_a_link_is_written_and_read(tmp_path: Path) -> None:
    link = Link("a", 3, False, (Turn("/c0", 1, ("v", "w"), True, 5, None, 7, None, True),))
    link.write(tmp_path)
    assert read_link(tmp_path / "a.json") == link
    assert read_link(tmp_path / "b.json") is None


def test_a_backlog_of_a_link_comes_in_portions(tmp_path: Path) -> None:
    carrier = Carrier(tmp_path / "c0")
    for second in range(0, 600, 60):
        rows = [Row(1, (second + n) * 1000 * MS, second + n, born=(second + n) * 1000 * MS) for n in range(60)]
        carrier.run(rows, (second + 100) * 1000 * MS)
    Link("a", 1, True, (carrier.turn(1),)).write(tmp_path / "links")
    reader, position, portions = feed(tmp_path, most_rows=100), LinkPosition(), []
    while (end := reader.advance(position)) != position:
        portions.append(rows_between(reader, position, end))
        position = end
    assert [value for portion in portions for _, _, value in portion] == list(range(600))
    assert max(map(len, portions)) <= 101


def test_what_comes_from_a_node_that_is_to_be_far_away_takes_so_long_and_says_so(tmp_path: Path) -> None:
    carriers = [Carrier(tmp_path / f"c{n}") for n in range(2)]
    for number, (carrier, name, node) in enumerate(zip(carriers, "ab", ("near", "far"), strict=True), start=1):
        carrier.run([Row(number, 10 * MS, number, 10 * MS)], 100 * MS)
        Link(name, number, True, (replace(carrier.turn(number), node=node),)).write(tmp_path / "links")
    reader = feed(tmp_path)
    reader._away = {"far": 0.3}
    begun = time.monotonic()
    position = reader.advance(LinkPosition())
    assert time.monotonic() - begun >= 0.3
    assert position.took.keys() == {"near", "far"}
    look, delay = position.took["far"]
    assert 300_000 <= look <= delay, "a commit is older than the look that finds it"
    assert position.took["near"][0] < 300_000
    again = time.monotonic()
    assert reader.advance(position) == position and reader.advance(position).to_json() == position.to_json()
    assert time.monotonic() - again < 0.3, "where there is nothing new, nobody waits"
    assert LinkPosition.from_json(json.loads(json.dumps(position.to_json()))) == position
