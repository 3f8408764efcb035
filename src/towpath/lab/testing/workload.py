"""A workload: recorded streams and the standing queries that are submitted and withdrawn while they flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import duckdb

from towpath.config.settings import BEGINNING, NOW, Start
from towpath.lab.testing.files import read_files, write_file
from towpath.lab.testing.late import late_rows
from towpath.lab.testing.recording import Recording
from towpath.lab.testing.shapes import Shape
from towpath.plan import CarrierKinds


@dataclass(frozen=True)
class Replacement:
    """Other SQL under the name of a query that stands, submitted before the chunk of phase `phase` arrives."""

    phase: int
    sql: str


@dataclass(frozen=True)
class DrawnQuery:
    """One query, submitted before the chunk of phase `submit` arrives and withdrawn before that of phase `withdraw`."""

    sql: str
    submit: int = 0
    withdraw: int | None = None
    sink: bool = False  # results also go to a folder of their own
    start: Start | None = None  # None: what queries have that say nothing
    replaced: tuple[Replacement, ...] = ()
    stays: bool = False  # it is not sent to other nodes

    @property
    def begins(self) -> Start:
        return self.start or (NOW if self.submit else BEGINNING)

    @property
    def texts(self) -> list[tuple[int, str]]:
        """Its SQL, with the phase from which on it is that."""
        return [(self.submit, self.sql), *((change.phase, change.sql) for change in self.replaced)]

    @property
    def goes_on(self) -> bool:
        """It neither ends nor changes."""
        return self.withdraw is None and not self.replaced


@dataclass(frozen=True)
class Workload:
    recording: Recording
    queries: dict[str, DrawnQuery]
    restarts: tuple[int, ...] = ()  # phases before which the job is stopped and started again
    added: dict[str, int] = field(default_factory=dict)  # streams that the job file has only from such a phase on
    carriers: tuple[CarrierKinds, ...] = (CarrierKinds.COMPILED,)  # what the job file says, from one start to the next
    changing: bool = False  # queries change their kind of carrier while they run

    def edited(self, phase: int) -> bool:
        """Whether the job file is read before a phase."""
        return phase in (0, *self.restarts)

    def database(self) -> duckdb.DuckDBPyConnection:
        """A new in-memory database with the complete recording, as the oracle wants it."""
        return database_of(self.recording)


def database_of(recording: Recording) -> duckdb.DuckDBPyConnection:
    """A new in-memory database. What a file means is what DuckDB reads in it."""
    con = duckdb.connect()
    for name, stream in recording.catalog.items():
        with TemporaryDirectory() as folder:
            file = Path(folder) / f"all.{recording.formats.get(name, 'parquet')}"
            write_file(recording.complete(name), file)
            con.register(name, read_files(con, [file], stream).to_arrow_table())
    for name, rows in recording.tables.items():
        con.register(name, rows)
    return con


def counting(recording: Recording) -> dict[str, DrawnQuery]:
    """A query for each stream with late rows that stands all the time, where it is: so that they are counted."""
    return {
        f"late-{name}": DrawnQuery(f"SELECT count(*) AS c0 FROM {name} [RANGE 5 SECONDS]", stays=True)
        for name in late_rows(recording)
    }


def named(submissions: Sequence[DrawnQuery]) -> dict[str, DrawnQuery]:
    return {f"q{number:03}": submission for number, submission in enumerate(submissions)}


def plain_submission(rng: Random, shape: Shape, phases: int) -> DrawnQuery:
    """It comes, and perhaps goes again. Its constants are of few sets, so that some queries come out equal."""
    sql = _random_text(rng, shape)
    submit = max(rng.randint(-8, phases - 1), 0)
    leaves = submit + 1 < phases and rng.randint(0, 6) == 6
    withdraw = rng.randint(submit + 1, phases - 1) if leaves else None
    return DrawnQuery(sql, submit, withdraw, sink=rng.randint(0, 7) == 7)


def random_submission(rng: Random, shapes: Sequence[Shape], recording: Recording, calm: int) -> DrawnQuery:
    """One that also may ask for some beginning, and change. Before phase `calm` no row is late."""
    phases, shape = len(recording.chunks), rng.choice(shapes)
    plain = plain_submission(rng, shape, phases)
    changes = range(plain.submit + 1, phases if plain.withdraw is None else plain.withdraw)
    # A sink goes on only if the columns stay the same.
    replaced = random_replacements(rng, [shape] if plain.sink else [shape, shape, rng.choice(shapes)], changes)
    start = random_start(rng, recording) if plain.submit < max(calm, 1) else None
    return replace(plain, start=start, replaced=replaced)


def random_replacements(rng: Random, shapes: Sequence[Shape], phases: Sequence[int]) -> tuple[Replacement, ...]:
    """In some of these phases."""
    if rng.randint(0, 4) < 4:
        return ()
    return tuple(Replacement(phase, _random_text(rng, rng.choice(shapes))) for phase in phases if rng.randint(0, 1))


def random_start(rng: Random, recording: Recording) -> Start | None:
    """From when on a query is to answer: the beginning, or the time of some row.

    Whoever reads the past again reads it in micro-batches of its own, so what was late may be in time for it. No query
    asks for a past with late rows.
    """
    kind = rng.randint(0, 5)
    if kind < 4:
        return None
    name, phase = rng.choice(sorted(recording.catalog)), rng.randrange(len(recording.chunks))
    times = recording.times(phase, name)
    return Start(rng.choice(times)) if kind == 5 and times else BEGINNING


def with_carriers(rng: Random, workload: Workload) -> Workload:
    """Every kind of carriers, another one after a restart, and perhaps both kinds in turns."""
    kinds = tuple(rng.choice(list(CarrierKinds)) for _ in range(1 + len(workload.restarts)))
    return replace(workload, carriers=kinds, changing=rng.choice((False, True)))


def _random_text(rng: Random, shape: Shape) -> str:
    return shape.text(constants=rng.randint(0, 7), twist=max(rng.randint(-3, 3), 0))
