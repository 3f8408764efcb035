"""The Spark runtime of one node: starts carriers, publishes their assignment tables, reports what their batches did."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from towpath.errors import StoreError
from towpath.lang.query import Lookup
from towpath.plan.assignment import Row, TableChange
from towpath.plan.assignment import columns as assignment_columns
from towpath.plan.lookups import lookups_of, values_of
from towpath.plan.templates import Template
from towpath.results.links import LinkIndex
from towpath.results.log import RESULTS
from towpath.runtime.carriers import CarrierEvent, CarrierFailed, CarrierStumbled, TriedOut
from towpath.schema import Type, is_link, stream_of
from towpath.spark import assignments, trial, universal, writers
from towpath.spark.assignment_source import FORMAT, VERSION
from towpath.spark.backlog import has_more, known_us
from towpath.spark.carrier import build, column_types
from towpath.spark.failures import StoppedByOthers, headline, is_outside, pause_after
from towpath.spark.inputs import InputPlace, open_cut, open_input, open_links
from towpath.spark.lookups import join_tables, open_version
from towpath.spark.modes import functions_of, is_remote
from towpath.spark.node import register_sources
from towpath.spark.progress import Reads, batch_done
from towpath.store import durable
from towpath.store.layout import Store
from towpath.streams.definition import StreamDef
from towpath.streams.intake import Intakes

log = logging.getLogger(__name__)

WRITTEN = "written"  # a folder of what workers have written, and no micro-batch has yet
LOOK_S = 0.1
LONGEST_REST_S = 1.0  # between two looks at the carriers of an endpoint


class _Started(NamedTuple):
    template: Template
    epoch: int
    banned: tuple[int, ...]


class SparkRuntime:
    """Runs carriers in one Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        streams: Sequence[StreamDef],
        *,
        trigger_ms: int,
        anchor_us: int,
        away: Mapping[str, float] | None = None,
    ) -> None:
        """`away`: by node, for so many seconds what comes from there is to be on its way."""
        self._spark = spark
        self._store = store
        self._streams = streams
        self._trigger_ms = trigger_ms
        self._anchor_us = anchor_us
        self._away = away or {}
        self._queries: dict[str, StreamingQuery] = {}
        self._started: dict[str, _Started] = {}
        self._links_read: dict[Path, LinkIndex] = {}
        self._intakes = Intakes(store.intake, store.rejected, min(LOOK_S, trigger_ms / 2000))
        self._failures: dict[str, int] = {}  # in a row, without a finished micro-batch between them
        self._again_at: dict[str, float] = {}  # when a carrier that failed is to be started again
        self._news: list[CarrierEvent] = []
        self._closed = False  # carriers stay dead
        self._reviving = threading.RLock()  # who waits for a carrier and who asks for news may both find it dead
        self._inputs: dict[str, list[InputPlace]] = {}
        self._reads: dict[str, list[Reads]] = {}
        self._seen: dict[str, int] = {}
        self._behind: dict[str, bool] = {}  # whether a carrier may not have read yet all that was there
        # A question costs an endpoint and us 8 ms of CPU time: asked five times a second, four carriers took a quarter
        # of a core (docs/design/moving.md).
        self._rest_s = min(LONGEST_REST_S, trigger_ms / 4000) if is_remote(spark) else 0.0
        self._look_at = 0.0
        register_sources(spark)
        # On an endpoint carriers outlive the controller that started them.
        self._found = {str(query.name): query for query in spark.streams.active}
        self.adopted: list[str] = []  # carriers that were found running

    def publish(self, carrier: str, template: Template, version: int, change: TableChange) -> None:
        _publish(self._store.assignments(carrier), template, version, change)

    def start(self, carrier: str, template: Template, epoch: int, banned: Sequence[int] = ()) -> None:
        with self._reviving:
            self._started[carrier] = _Started(template, epoch, tuple(banned))
            self._failures[carrier] = 0
            self._try(carrier)

    def _try(self, carrier: str) -> None:
        try:
            self._launch(carrier, *self._started[carrier])
        except (PySparkException, OSError) as error:
            self._note_failure(carrier, error)

    def _launch(self, carrier: str, template: Template, epoch: int, banned: Sequence[int]) -> None:
        classes = range(len(template.family.classes))
        places = self._inputs[carrier] = [self._place(carrier, self._store.epoch(carrier, epoch), n) for n in classes]
        self._reads[carrier] = [self._reads_of(template, n) for n in classes]
        self._seen[carrier] = -1
        self._behind[carrier] = True
        with functions_of(self._spark):
            built = self._build(carrier, template, places, self._store.assignments(carrier), banned)
        name = f"{carrier}.e{epoch}"
        if self._failures.get(carrier):
            # An endpoint may have started it although the answer never came.
            running = {str(query.name): query for query in self._spark.streams.active}
            self._found |= {name: running[name]} if name in running else {}
        if (found := self._found.pop(name, None)) is not None and found.isActive:
            self._queries[carrier] = found
            self.adopted.append(carrier)
            return
        folder = self._store.open_epoch(carrier, epoch)
        if not is_remote(self._spark):
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", carrier)
        with self._settings(template):
            self._queries[carrier] = (
                built.writeStream.queryName(name)
                .outputMode("append")
                .option("checkpointLocation", str(folder / "checkpoint"))
                .trigger(processingTime=f"{self._trigger_ms} milliseconds")
                .foreachBatch(self._writer(template, folder, banned))
                .start()
            )

    def _writer(self, template: Template, folder: Path, banned: Sequence[int]) -> writers.Write:
        if template.family.universal:
            return writers.by_workers(folder / RESULTS, folder / WRITTEN)
        return writers.by_spark(folder / RESULTS, banned)

    def _settings(self, template: Template) -> AbstractContextManager[None]:
        return universal.settings(self._spark, template) if template.family.universal else nullcontext()

    def _build(
        self,
        carrier: str,
        template: Template,
        places: Sequence[InputPlace],
        assigned: Path,
        banned: Sequence[int],
    ) -> DataFrame:
        cut = open_cut(self._spark, places[0].offsets) if template.family.stateful else None
        inputs = [self._open(carrier, template, n, place, cut) for n, place in enumerate(places)]
        if template.family.universal:
            version = self._spark.read.format(VERSION).option("path", str(assigned)).load()
            return universal.build(template, inputs, version, assigned, places[0].index.parent.parent / WRITTEN, banned)
        table = (
            self._spark.read.format(FORMAT)
            .option("path", str(assigned))
            .option("schema", assignments.schema_ddl(assignment_columns(template, column_types(template))))
            .load()
        )
        return build(template, inputs, table, banned)

    def _place(self, carrier: str, folder: Path, n: int) -> InputPlace:
        cores = int(self._spark.conf.get("spark.sql.shuffle.partitions", "1") or 1)
        ticks, index = self._store.carrier(carrier) / f"i{n}", folder / f"i{n}" / "files"
        signs = (self._store.drain, self._store.rejected, folder / "checkpoint" / "offsets")
        return InputPlace(ticks, index, *signs, self._anchor_us, cores, self._intakes.let_in, self._away)

    def _reads_of(self, template: Template, n: int) -> Reads:
        schema_class = template.family.read[n]
        if is_link(schema_class):
            return Reads((), sources=1)
        names = [s.stream.name for s in self._streams if s.stream.schema_class == schema_class]
        return Reads(names, sources=2 if template.family.stateful else 1)

    def _open(self, carrier: str, template: Template, n: int, place: InputPlace, cut: DataFrame | None) -> DataFrame:
        alias, needed = f"i{n}", _needed(template, f"i{n}")
        rows = self._open_streams(carrier, template, n, needed, place, cut)
        lookups = lookups_of(template.family.classes[n])
        types = {column: Type(type_) for column, type_ in template.family.classes[n] if column}

        def open_table(lookup: Lookup, columns: Sequence[str]) -> DataFrame:
            return open_version(self._spark, lookup, columns, self._store.table, place.offsets)

        return join_tables(rows, alias, types, lookups, needed, open_table)

    def _open_streams(
        self, carrier: str, template: Template, n: int, columns: Sequence[str], place: InputPlace, cut: DataFrame | None
    ) -> DataFrame:
        """The tuples of one input, before they are joined with tables."""
        alias, schema_class = f"i{n}", template.family.read[n]
        if is_link(schema_class):
            derived = stream_of(schema_class)
            needed = [c for c in columns if derived.column(c)]
            return open_links(self._spark, alias, derived, needed, self._store.links(schema_class), place)
        streams = [s for s in self._streams if s.stream.schema_class == schema_class]
        if not streams:
            raise StoreError(
                f"{self._store.root}: carrier {carrier} reads streams with the columns "
                f"{dict(schema_class)}, and the job has none; give a job with other streams another store"
            )
        needed = [c for c in columns if streams[0].stream.column(c)]
        joined = len(template.family.classes) > 1
        return open_input(self._spark, alias, streams, needed, place, cut=cut, joined=joined)

    def try_out(
        self, carrier: str, template: Template, epoch: int, rows: Sequence[Row], banned: Sequence[int] = ()
    ) -> None:
        arguments = (carrier, template, epoch, rows, banned)
        threading.Thread(target=self._try_out, args=arguments, name=f"trying {carrier}", daemon=True).start()

    def _try_out(
        self, carrier: str, template: Template, epoch: int, rows: Sequence[Row], banned: Sequence[int]
    ) -> None:
        folder = self._store.trial(carrier)
        try:
            trial.copy(self._store.epoch(carrier, epoch), folder)
            _publish(folder / "assignments", template, 1, TableChange(rows))
            places = [self._place(carrier, folder, n) for n in range(len(template.family.classes))]
            with functions_of(self._spark):
                built = self._build(carrier, template, places, folder / "assignments", banned)
            query = built.writeStream.queryName(f"{carrier}.e{epoch}.trial").outputMode("append")
            query = query.option("checkpointLocation", str(folder / "checkpoint"))
            query = query.trigger(processingTime=f"{self._trigger_ms} milliseconds").foreachBatch(trial.discard)
            with self._settings(template):
                started = query.start()
            error = trial.failure_of(started)
        except Exception as caught:
            error = caught
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if error is not None:
            log.info("carrier %s failed when it was tried out: %s", carrier, error)
        with self._reviving:
            found = (None, False) if error is None else (headline(error), is_outside(error))
            self._news.append(TriedOut(carrier, *found))

    def events(self) -> list[CarrierEvent]:
        self._stop_orphans()
        found: list[CarrierEvent] = []
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + self._rest_s
            found += self._look()
        with self._reviving:
            self._restart_due()
            found += self._news
            self._news.clear()
        return found

    def _look(self) -> list[CarrierEvent]:
        """News of every carrier; one question answers which of them still run."""
        running = {query.id for query in self._spark.streams.active}
        found: list[CarrierEvent] = []
        for carrier, query in list(self._queries.items()):
            found += self._progress(carrier, query)
            if query.id not in running and not query.isActive:
                self._mark_failed(carrier, query, query.exception() or StoppedByOthers())
        return found

    def _stop_orphans(self) -> None:
        """Carriers that were found running and nobody has asked for: other nodes run them by now."""
        while self._found:
            name, query = self._found.popitem()
            log.warning("stopping carrier %s, which was found running and is not this node's any more", name)
            query.stop()

    def _mark_failed(self, carrier: str, query: StreamingQuery, error: BaseException) -> None:
        with self._reviving:
            # Else somebody else has found it dead before, or it is to be dead.
            if self._queries.get(carrier) is query and not self._closed:
                self._note_failure(carrier, error)

    def _note_failure(self, carrier: str, error: BaseException) -> None:
        self._queries.pop(carrier, None)
        times = self._failures[carrier] = self._failures.get(carrier, 0) + 1
        log.error("carrier %s failed, %d times in a row: %s", carrier, times, headline(error))
        log.info("all that Spark says of it: %s", error)
        # What Spark cannot plan, it will not be able to plan the next time either.
        pause_s = None if isinstance(error, AnalysisException) else pause_after(times, error)
        if pause_s is None:
            self._news.append(CarrierFailed(carrier, headline(error), is_outside(error)))
        else:
            self._again_at[carrier] = time.monotonic() + pause_s
            self._news.append(CarrierStumbled(carrier, headline(error)))

    def _restart_due(self) -> None:
        """Starts carriers that failed again, after a pause that grows: a full disk or a busy machine passes."""
        for carrier in [c for c, at in self._again_at.items() if at <= time.monotonic()]:
            del self._again_at[carrier]
            self._try(carrier)

    def _progress(self, carrier: str, query: StreamingQuery) -> list[CarrierEvent]:
        seen = self._seen[carrier]
        last = query.lastProgress
        if last is None or last["batchId"] <= seen:
            return []
        # Spark builds the whole list for every call; mostly there is one new batch.
        recent = [last] if last["batchId"] == seen + 1 else query.recentProgress
        fresh = [p for p in recent if p["batchId"] > seen and "addBatch" in p["durationMs"]]
        first = seen < 0
        found: list[CarrierEvent] = []
        for progress in fresh:
            done = batch_done(carrier, progress, self._reads[carrier], first=first)
            self._behind[carrier] = more = self._behind[carrier] and has_more(progress, self._checkpoint(carrier))
            found.append(replace(done, joined=self._joined(carrier), more=more, known_us=known_us(progress)))
            first = False
        if fresh:
            self._seen[carrier] = fresh[-1]["batchId"]
            self._failures[carrier] = 0
        return found

    def _checkpoint(self, carrier: str) -> Path:
        return self._store.epoch(carrier, self._started[carrier][1]) / "checkpoint"

    def _joined(self, carrier: str) -> Mapping[tuple[str, int], int]:
        """The links that a carrier's inputs read by now."""
        template = self._started[carrier].template
        places = zip(template.family.classes, self._inputs[carrier], strict=True)
        read = [self._links_read.setdefault(p.index, LinkIndex(p.index)) for c, p in places if is_link(c)]
        return {(link.name, link.id): link.after_us for index in read for link in index.joined()}

    def waiting(self, carrier: str) -> bool:
        query = self._queries.get(carrier)
        if query is None:
            return False
        status = query.status
        if status["isDataAvailable"] or status["isTriggerActive"] or status["message"].startswith("Initializing"):
            return False
        last = query.lastProgress
        return last is None or "addBatch" not in last["durationMs"] or last["batchId"] <= self._seen[carrier]

    def tick(self, carrier: str, input: int, event_us: int) -> None:
        if carrier in self._inputs:
            self._inputs[carrier][input].tick(event_us)

    def finish_input(self, *, close: bool) -> None:
        sign = {"at_us": time.time_ns() // 1000, "close": close}
        durable.write_json(self._store.drain, sign, lasting=False)

    def settle(self, carriers: Sequence[str]) -> bool:
        # Each waits for its own next trigger; one after the other they would add up. Not in a pool of threads: the end
        # of the process would wait for those that ask an endpoint which is gone.
        self._intakes.sweep()
        failures: list[Exception] = []
        threads = [
            threading.Thread(target=self._try_to_settle, args=(carrier, failures), daemon=True) for carrier in carriers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._look_at = 0.0  # who waited wants to know
        if failures:
            raise failures[0]
        return True

    def _try_to_settle(self, carrier: str, failures: list[Exception]) -> None:
        try:
            self._settle(carrier)
        except Exception as error:
            failures.append(error)

    def _settle(self, carrier: str) -> None:
        while True:
            with self._reviving:  # not while it is neither dead nor alive
                self._restart_due()
                query, dead = self._queries.get(carrier), carrier in self._again_at
            if query is None and not dead:
                return
            if query is None:
                time.sleep(LOOK_S)
                continue
            try:
                # Twice: the first call may be answered by a trigger that had looked for data before we asked.
                query.processAllAvailable()
                query.processAllAvailable()
                if query.isActive or self._closed:
                    return
                self._mark_failed(carrier, query, query.exception() or StoppedByOthers())
            except PySparkException as error:
                self._mark_failed(carrier, query, error)

    # It lives and dies with whoever asks; runtime/remote_node.py looks after endpoints.
    lost: str | None = None
    slow: str | None = None

    def ping(self) -> None:
        self._spark.conf.get("spark.sql.session.timeZone")

    def round_trips(self) -> list[float]:
        return [] if is_remote(self._spark) else [0.0]

    def forget(self) -> None:
        self.close()
        with self._reviving:
            self._queries.clear()
            self._closed = False

    @property
    def heap_bytes(self) -> int | None:
        """What the JVM of this process has in use; an endpoint does not say."""
        if is_remote(self._spark):
            return None
        jvm = self._spark.sparkContext._jvm
        assert jvm is not None, "the session is open"
        runtime = jvm.java.lang.Runtime.getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory())

    def stop(self, carrier: str) -> None:
        self._again_at.pop(carrier, None)
        query = self._queries.pop(carrier, None)
        if query is not None:
            query.stop()

    def close(self) -> None:
        """Stops all carriers; `events` still reports their last batches."""
        with self._reviving:
            self._closed = True
            self._again_at.clear()
        self._intakes.close()
        self._look_at = 0.0
        for carrier, query in list(self._queries.items()):
            query.stop()
            if query.exception() is not None:
                del self._queries[carrier]


def _publish(folder: Path, template: Template, version: int, change: TableChange) -> None:
    columns = assignment_columns(template, column_types(template))
    assignments.publish(folder, version, columns, change, by_version=template.family.universal)


def _needed(template: Template, alias: str) -> list[str]:
    if template.family.universal:
        return [column for column, _ in template.family.classes[int(alias[1:])] if column]
    columns = [c for probe in template.probes for c in probe]
    columns += [*template.ranges, *template.columns, *(c for pair in template.family.keys for c in pair)]
    columns += [(c.table, c.name) for s in template.slots for c in s.columns]
    looked_up = sorted(values_of(lookups_of(template.family.classes[int(alias[1:])])))
    return list(dict.fromkeys([*(name for owner, name in columns if owner == alias), *looked_up]))
