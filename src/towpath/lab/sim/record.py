"""Keeps what the tables of an Outcome need."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from towpath.lab.sim.measure import busy_so_far, waited_so_far
from towpath.lab.sim.plane import DataPlane
from towpath.lab.sim.tables import NOBODY, Array
from towpath.placement.index import Floats, index
from towpath.placement.problem import Placement, Problem

Columns = dict[str, NDArray[Any]]


@dataclass
class Mail:
    """Messages of an actor."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0


class Recorder:
    def __init__(self, problem: Problem, plane: DataPlane) -> None:
        self._problem = problem
        self._columns = index(problem)
        self._plane = plane
        self._node_names = np.array([n.name for n in problem.cluster.nodes])
        self._working = plane.t.nodes.cpu > 0  # the others only hand streams on, or want results
        self._query_names = np.array([q.name for q in problem.queries])
        self._query_of_path = np.repeat(
            np.arange(len(plane.t.queries)), plane.t.queries.end_path - plane.t.queries.first_path
        )
        self.windows: list[dict[str, float]] = []
        self._nodes: list[Columns] = []
        self._links: list[Columns] = []
        self._queries: list[Columns] = []
        self.state_bytes = 0.0  # counted by those who send them
        self._mail: dict[str, Mail] = {}
        self._begin()

    def _begin(self) -> None:
        t = self._plane.t
        self._since = self._plane.now
        self._busy, self._waited = busy_so_far(self._plane), waited_so_far(self._plane)
        self._node_rows, self._link_bytes = t.nodes.copy(), t.links.bytes.copy()
        self._path_rows, self._results = t.paths.copy(), t.queries.results.copy()
        self._counted = self._sums()

    def _sums(self) -> dict[str, float]:
        t = self._plane.t
        return {
            "results": int(t.queries.results.sum()),
            "bytes": float(t.links.bytes.sum()),
            "result_bytes": float(t.links.result_bytes.sum()),
            "state_bytes": self.state_bytes,
            "messages": sum(mail.sent for mail in self._mail.values()),
            "message_bytes": sum(mail.sent_bytes for mail in self._mail.values()),
            "lost": int(sum(self.lost().values())),
        }

    def mail(self, actor: str) -> Mail:
        """What an actor has sent and received so far."""
        return self._mail.setdefault(actor, Mail())

    def lost(self) -> dict[str, int]:
        clock = self._plane.t.clock[0]
        return {
            "at_nodes": int(clock.lost_at_nodes),
            "on_links": int(clock.lost_on_links),
            "at_entry": int(clock.lost_at_entry),
        }

    def take(self) -> None:
        """Ends a window and begins the next one."""
        now = self._plane.now
        seconds = now - self._since
        if seconds <= 0:
            return
        load = (busy_so_far(self._plane) - self._busy) / seconds
        queries = self._query_window(now)
        self._queries.append(queries)
        self._nodes.append(self._node_window(now, seconds, load))
        self._links.append(self._link_window(now))
        sums = self._sums()
        self.windows.append(
            {
                "at": now,
                "pr_max": _largest(queries["pr"]),
                "load_mean": float(load[self._working].mean()),
                "load_stdev": float(np.std(load[self._working], ddof=1)) if self._working.sum() > 1 else 0.0,
                **{name: value - self._counted[name] for name, value in sums.items()},
            }
        )
        self._begin()

    def _node_window(self, now: float, seconds: float, load: Floats) -> Columns:
        rows, before = self._plane.t.nodes, self._node_rows
        return {
            "at": np.full(len(rows), now),
            "node": self._node_names,
            "load": load,
            "queued": (waited_so_far(self._plane) - self._waited) / seconds,
            "memory": rows.queued_bytes + self._state_by_node(),
            "bytes_in": (rows.bytes_in - before.bytes_in) / seconds,
            "bytes_out": (rows.bytes_out - before.bytes_out) / seconds,
        }

    def _state_by_node(self) -> Floats:
        """Operators of equal signature on a node have one state."""
        t = self._plane.t
        nodes = t.places.node[self._columns.home]
        operators, places = np.nonzero(nodes != NOBODY)
        at = nodes[operators, places]
        count = len(t.nodes)
        _, once = np.unique(self._columns.identity[operators + self._columns.streams] * count + at, return_index=True)
        return np.bincount(at[once], t.counts.state[operators[once], places[once]], count).astype(np.float64)

    def _link_window(self, now: float) -> Columns:
        size = self._plane.t.links.bytes - self._link_bytes
        sources, targets = np.nonzero(size)
        return {
            "at": np.full(len(sources), now),
            "source": self._node_names[sources],
            "target": self._node_names[targets],
            "bytes": size[sources, targets],
        }

    def _query_window(self, now: float) -> Columns:
        t = self._plane.t
        pr, delay = self._by_query(t.paths, self._path_rows)
        return {
            "at": np.full(len(pr), now),
            "query": self._query_names,
            "pr": pr,
            "delay": delay,
            "results": t.queries.results - self._results,
        }

    def _by_query(self, paths: Array, before: Array) -> tuple[Floats, Floats]:
        """PR_k = max over its streams of the mean PR_k^l, and the mean delay; NaN without results."""
        count = len(self._problem.queries)
        with np.errstate(invalid="ignore"):
            ratio = (paths.ratio - before.ratio) / (paths.measured - before.measured)
            pr = np.full(count, -np.inf)
            np.maximum.at(pr, self._query_of_path, np.nan_to_num(ratio, nan=-np.inf))
            tuples = np.bincount(self._query_of_path, paths.tuples - before.tuples, count)
            delay = np.bincount(self._query_of_path, paths.delay - before.delay, count) / tuples
        return np.where(np.isinf(pr), np.nan, pr), delay

    # --- the whole run -----------------------------------------------------------------------------------------------

    def nodes(self) -> pd.DataFrame:
        return _joined(self._nodes)

    def links(self) -> pd.DataFrame:
        return _joined(self._links)

    def queries(self) -> pd.DataFrame:
        return _joined(self._queries)

    def operators(self) -> pd.DataFrame:
        """Over all places of each."""
        counts = self._plane.t.counts
        return pd.DataFrame(
            {
                "operator": self._columns.points[self._columns.streams :],
                "taken": counts.taken.sum(axis=1),
                "given": counts.given.sum(axis=1),
                "work": counts.work.sum(axis=1),
                "state_bytes": counts.state.sum(axis=1),
            }
        )

    def actors(self) -> pd.DataFrame:
        rows = [{"actor": actor, **asdict(mail)} for actor, mail in self._mail.items()]
        return pd.DataFrame(rows, columns=["actor", *(f.name for f in fields(Mail))])

    def streams(self) -> pd.DataFrame:
        names = self._columns.points[: self._columns.streams]
        return pd.DataFrame({"stream": names, "tuples": self._plane.t.streams.tuples})

    def paths(self) -> pd.DataFrame:
        rows = self._plane.t.paths
        with np.errstate(invalid="ignore"):
            return pd.DataFrame(
                {
                    "query": self._query_names[self._query_of_path],
                    "stream": np.array(self._columns.points)[rows.stream] if len(rows) else [],
                    "tuples": rows.tuples,
                    "pr": rows.ratio / rows.measured,
                    "delay": rows.delay / rows.tuples,
                    "delay_max": rows.most,
                    "delivery": rows.delivery / rows.delivered,
                }
            )

    def placement(self, before: Placement) -> Placement:
        """Where fragments are, those under way where they come from."""
        table = self._plane.t.places
        nodes: dict[str, tuple[str, ...]] = {}
        for name, copies in before.nodes.items():
            of_copies = table[self._columns.fragment[name]].reshape(-1, 2)
            nodes[name] = tuple(str(self._node_names[_home(pair)]) for pair in of_copies[: len(copies)])
        return Placement(nodes, before.refused)


def _largest(values: Floats) -> float:
    """Of those that are known, if any is."""
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else np.nan


def _home(places: Array) -> int:
    """The node of a copy: the older of its two places, if both are in use."""
    used = [place for place in places if place.node != NOBODY]
    return int(min(used, key=lambda place: int(place.since)).node)


def _joined(parts: list[Columns]) -> pd.DataFrame:
    if not parts:
        return pd.DataFrame()
    return pd.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
