"""The optimisation model (III.1 to III.8) over the streams and operators that are free; all others stay as they are.

Two forms, with the same best objective:

- *with links*, the paper's own: x_hms for every pair of nodes, and potentials p_hs that forbid cycles (III.7). It has
  nodes^2 columns for each stream.
- *without links*, where no link can be full before a network card at one of its ends is, so that III.6a says nothing.
  Then it does not matter who sends to whom, but only how often a node sends a stream, and who receives it: a few
  columns for each node and stream. Receivers can be joined to senders without a cycle exactly if a node that does not
  only receive the stream sends it at least once: join first those that send it on; each takes a place and brings one.

y_hs is left out: it is "received, made or entering", and what III.4 and III.5 ask of it is asked of that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from towpath.placement.cluster import Cluster, Node
from towpath.placement.costs.sqpr import SqprWeights, weights_for
from towpath.placement.index import Floats, Ints
from towpath.reuse.allocation import Allocation, use
from towpath.reuse.solver import IntegerProgram
from towpath.reuse.system import SharedOperator, SharedStream, StreamRequest, System

Terms = list[tuple[Ints, float]]


@dataclass(frozen=True)
class Rules:
    """What is allowed beside the paper's model, and what is to be made best."""

    relays: bool = True  # a node may hand on a stream that it only receives
    once: bool = False  # an operator runs on one node at most, as a fragment of a Placement
    weights: SqprWeights | None = None  # the paper's, if not said
    ignore: frozenset[str] = frozenset()  # resources without a limit: to find out which one binds


def links_can_bind(cluster: Cluster) -> bool:
    """Whether a link may be full while the network cards at both of its ends are not."""
    nodes, network = cluster.nodes, cluster.network
    most = max((min(a.bandwidth_out, b.bandwidth_in) for a in nodes for b in nodes if a is not b), default=0.0)
    return network.bandwidth < most or any(link.bandwidth < most for link in network.links)


class Model:
    """The program with its columns: z, d as in the paper; received and sent stand for x, in_all for O_4."""

    def __init__(
        self,
        system: System,
        current: Allocation,
        wanted: Sequence[StreamRequest],
        forced: bool,
        rules: Rules | None = None,
        beside: Sequence[StreamRequest] = (),
        idle: int | None = None,
        near: Collection[str] = (),
    ) -> None:
        """`wanted`: requests to admit; if `forced`, there is no solution without them. Admitted ones stay (IV.9).

        `beside`: admitted ones that are planned anew together with them. `idle`: of the nodes that have nothing of what
        is planned, only so many are used, those with most room, and those `near`: they are alike, and more of them
        mostly make the search longer.
        """
        self.system, self.current, self.rules = system, current, rules or Rules()
        self.beside = beside
        self.nodes = system.cluster.nodes
        streams, operators = system.related(s for request in (*wanted, *beside) for s in request.streams)
        self.streams: list[SharedStream] = [system.stream[name] for name in streams]
        self.operators: list[SharedOperator] = [system.operator[name] for name in operators]
        self.at = {name: n for n, name in enumerate(streams)}
        number = {name: n for n, name in enumerate(operators)}
        self.makers = [[number[o.name] for o in system.makers[name]] for name in streams]
        self.fixed = self._fixed(set(operators))
        self.used = use(system, self.fixed)
        self.requests = self._affected(wanted)
        self.enters = np.array([[node.name in s.nodes for node in self.nodes] for s in self.streams], np.float64)
        self.usable = self._usable(idle, near)
        self.with_links = links_can_bind(system.cluster) and "link" not in self.rules.ignore
        self.program = IntegerProgram()
        self._add_columns({request.name for request in wanted}, forced)
        self._add_rows()

    def _fixed(self, operators: set[str]) -> Allocation:
        """What stays as it is."""
        now = self.current
        return Allocation(
            frozenset(run for run in now.runs if run.operator not in operators),
            frozenset(flow for flow in now.flows if flow.stream not in self.at),
            {stream: node for stream, node in now.provides.items() if stream not in self.at},
            now.admitted,
        )

    def _affected(self, wanted: Iterable[StreamRequest]) -> list[StreamRequest]:
        """The new requests, and the admitted ones whose streams are free."""
        admitted = (self.system.request[name] for name in sorted(self.current.admitted))
        return [*wanted, *(r for r in admitted if any(stream in self.at for stream in r.streams))]

    def _usable(self, idle: int | None, near: Collection[str]) -> Floats:
        """1 for the nodes that may be used, 0 for the others."""
        usable = np.ones(len(self.nodes))
        if idle is None:
            return usable
        position = self.system.cluster.position
        now, stays = self.current, self.fixed
        ends = {*near, *(run.node for run in now.runs - stays.runs)}
        ends |= {node for flow in now.flows - stays.flows for node in (flow.source, flow.target)}
        ends |= {node for stream, node in now.provides.items() if stream in self.at}
        ends |= {request.sink for request in self.requests if request.sink is not None}
        needed = {position[node] for node in ends}.union(np.flatnonzero(self.enters.any(axis=0)).tolist())
        others = np.array([n for n in range(len(usable)) if n not in needed], np.intp)
        usable[others[np.argsort(-self._room()[others], kind="stable")[idle:]]] = 0.0
        return usable

    def _room(self) -> Floats:
        """By node, the share that is left of whatever is scarcest there."""
        columns = ("cpu", self.used.load), ("bandwidth_in", self.used.bytes_in), ("bandwidth_out", self.used.bytes_out)
        shares = []
        for name, used in columns:
            limits = np.array([getattr(node, name) for node in self.nodes])
            shares.append(np.where(limits > 0, 1 - used / np.where(limits > 0, limits, 1.0), 0.0))
        return np.min(shares, axis=0)

    # --- columns -----------------------------------------------------------------------------------------------------

    def _add_columns(self, wanted: set[str], forced: bool) -> None:
        weights = self.rules.weights or weights_for(self.system.cluster)
        add, count = self.program.columns, len(self.nodes)
        self.most = count - 1.0  # times that a node can send a stream
        loads = np.array([operator.load for operator in self.operators])
        may = np.array([[o.nodes is None or node.name in o.nodes for node in self.nodes] for o in self.operators])
        self.z = add(weights.cpu * loads[:, None], upper=may * self.usable, shape=(len(loads), count))
        sizes = np.array([stream.bytes for stream in self.streams])
        per_tuple = np.array([node.transfer_cost for node in self.nodes])
        self.handling = np.outer([stream.tuples for stream in self.streams], per_tuple)
        costs = weights.network * sizes[:, None] + weights.cpu * self.handling
        self.received = add(costs, upper=(1 - self.enters) * self.usable)
        self.sent = add(weights.cpu * self.handling, upper=self.most)
        out = dict.fromkeys(s for r in self.requests if r.sink is None for s in r.streams if s in self.at)
        self.d = {name: add(np.zeros(count)) for name in out}
        stays = np.array([forced or request.name not in wanted for request in self.requests], np.float64)
        # Who stays in any case is no part of the objective: the gap is a share of what is to be decided.
        self.admitted = add(-weights.admitted * (1 - stays), lower=stays)
        self.in_all = add(weights.highest, lower=self.used.load.max(initial=0.0), upper=np.inf, whole=False, shape=(1,))
        shape = self.enters.shape
        if self.with_links:
            self.x = add(0.0, upper=1 - np.eye(count)[None], shape=(shape[0], count, count))
            self.p = add(0.0, upper=count, whole=False, shape=shape)
        elif self.rules.relays:
            self.first = add(0.0, upper=self.most, whole=False, shape=shape)  # sent by who does not only receive it
            self.sum_first = add(0.0, upper=np.inf, whole=False, shape=shape[:1])
            self.sum_made = add(0.0, upper=np.inf, whole=False, shape=shape[:1])

    def _made(self, stream: int, factor: float) -> Terms:
        return [(self.z[operator], factor) for operator in self.makers[stream]]

    def _there(self, stream: int, factor: float) -> Terms:
        """y_hs of all nodes, but for streams that enter there."""
        return [(self.received[stream], factor), *self._made(stream, factor)]

    # --- rows --------------------------------------------------------------------------------------------------------

    def _add_rows(self) -> None:
        for stream in range(len(self.streams)):
            self._add_stream(stream)
            if self.with_links:
                self._add_flows(stream)
            elif self.rules.relays:
                self._add_foundation(stream)
        for n, operator in enumerate(self.operators):
            if self.rules.once:
                self.program.row([(self.z[n], 1.0)], most=1.0)
            for name in operator.inputs:  # III.5b
                stream = self.at[name]
                self.program.rows([(self.z[n], 1.0), *self._there(stream, -1.0)], most=self.enters[stream])
        self._add_requests()
        self._add_kept()
        self._add_resources()
        if self.with_links:
            self._add_links()

    def _add_stream(self, stream: int) -> None:
        """III.5a and III.5c: what is received is sent, by nodes that have it."""
        program, sent, received = self.program, self.sent[stream], self.received[stream]
        program.row([(sent, 1.0), (received, -1.0)], 0.0, 0.0)
        having = self._there if self.rules.relays else self._made
        program.rows([(sent, 1.0), *having(stream, -self.most)], most=self.most * self.enters[stream])
        alone = all(len(self.operators[maker].outputs) == 1 for maker in self.makers[stream])
        if self.makers[stream] and alone:
            program.rows(self._there(stream, 1.0), most=1.0)  # nobody needs it twice

    def _add_foundation(self, stream: int) -> None:
        """What is received comes in the end from a node that has it otherwise; in place of III.7."""
        program, first, received = self.program, self.first[stream], self.received[stream]
        program.rows([(first, 1.0), (self.sent[stream], -1.0)], most=0.0)
        program.rows([(first, 1.0), *self._made(stream, -self.most)], most=self.most * self.enters[stream])
        in_all, made = self.sum_first[stream : stream + 1], self.sum_made[stream : stream + 1]
        program.row([(first, 1.0), (in_all, -1.0)], 0.0, 0.0)
        program.rows([(received, 1.0), (in_all, -1.0)], most=0.0)
        # Follows from the others, but helps the search: somebody makes it.
        entering = float(self.enters[stream].sum())
        program.row([*self._made(stream, 1.0), (made, -1.0)], -entering, -entering)
        program.rows([(received, 1.0), (made, -1.0)], most=0.0)

    def _add_flows(self, stream: int) -> None:
        """III.5c and III.7, flow by flow."""
        program, x, p, count = self.program, self.x[stream], self.p[stream], len(self.nodes)
        for n in range(count):
            program.row([(x[n], 1.0), (self.sent[stream, n : n + 1], -1.0)], 0.0, 0.0)
            program.row([(x[:, n], 1.0), (self.received[stream, n : n + 1], -1.0)], 0.0, 0.0)
            having = self._there if self.rules.relays else self._made
            own = [(columns[n : n + 1], factor) for columns, factor in having(stream, -1.0)]
            program.rows([(x[n], 1.0), *own], most=float(self.enters[stream, n]))
            big = count + 2.0
            others = np.arange(count) != n
            program.rows(
                [(p[others], -1.0), (p[n : n + 1], 1.0), (x[n][others], -big)], least=1.0 - big, count=count - 1
            )

    def _add_requests(self) -> None:
        """III.4: who is admitted gets each stream once, from a node that has it."""
        program = self.program
        for name, d in self.d.items():
            stream = self.at[name]
            program.rows([(d, 1.0), *self._there(stream, -1.0)], most=self.enters[stream])
            program.row([(d, 1.0)], most=1.0)
        position = self.system.cluster.position
        for n, request in enumerate(self.requests):
            admitted = (self.admitted[n : n + 1], -1.0)
            for name in (name for name in request.streams if name in self.at):
                if request.sink is None:
                    program.row([(self.d[name], 1.0), admitted], least=0.0)
                else:
                    stream, sink = self.at[name], position[request.sink]
                    there = [(columns[sink : sink + 1], factor) for columns, factor in self._there(stream, 1.0)]
                    program.row([*there, admitted], least=-float(self.enters[stream, sink]))

    def _add_kept(self) -> None:
        """Operators that stay where they are keep their inputs."""
        position = self.system.cluster.position
        kept = {
            (self.at[name], position[run.node])
            for run in self.fixed.runs
            for name in self.system.operator[run.operator].inputs
            if name in self.at
        }
        for stream, node in sorted(kept):
            there = [(columns[node : node + 1], factor) for columns, factor in self._there(stream, 1.0)]
            self.program.row(there, least=1.0 - float(self.enters[stream, node]))

    def _add_resources(self) -> None:
        """III.6, as shares of what a node has; and O_4."""
        sizes = [stream.bytes for stream in self.streams]
        arriving = list(zip(self.received, sizes, strict=True))
        leaving = list(zip(self.sent, sizes, strict=True))
        if self.system.delivery:
            leaving += [(d, self.system.stream[name].bytes) for name, d in self.d.items()]
        work = self._work()
        state = [(z, o.state_bytes) for z, o in zip(self.z, self.operators, strict=True)]
        self._limit("cpu", [node.cpu for node in self.nodes], self.used.load, work)
        self._limit("memory", [node.memory for node in self.nodes], self.used.state_bytes, state)
        self._limit("bandwidth", [node.bandwidth_in for node in self.nodes], self.used.bytes_in, arriving)
        self._limit("bandwidth", [node.bandwidth_out for node in self.nodes], self.used.bytes_out, leaving)
        count = len(self.nodes)
        self.program.rows([(self.in_all, 1.0), *((c, -np.asarray(f)) for c, f in work)], self.used.load, count=count)

    def _work(self) -> list[tuple[Ints, float | Floats]]:
        work: list[tuple[Ints, float | Floats]] = [
            (z, operator.load) for z, operator in zip(self.z, self.operators, strict=True)
        ]
        for stream, handling in enumerate(self.handling):
            if handling.any():
                work += [(self.sent[stream], handling), (self.received[stream], handling)]
        return work

    def _limit(self, kind: str, has: list[float], used: Floats, terms: Sequence[tuple[Ints, float | Floats]]) -> None:
        limits = np.array(has)
        limited = np.flatnonzero(np.isfinite(limits))
        if kind in self.rules.ignore or not len(limited) or not terms:
            return
        # What already has too much takes no more, and is no reason to refuse what others have room for.
        room = np.maximum(limits - used, 0.0)[limited]
        unit = np.where(limits > 0, limits, 1.0)[limited]
        spread = [
            (columns[limited], np.broadcast_to(np.asarray(factors, np.float64), len(limits))[limited] / unit)
            for columns, factors in terms
        ]
        self.program.rows(spread, most=room / unit)

    def _add_links(self) -> None:
        """III.6a."""
        for a, source in enumerate(self.nodes):
            for b, target in enumerate(self.nodes):
                limit = self._link(source, target)
                if a != b and isfinite(limit):
                    room = max(limit - self.used.links.get((a, b), 0.0), 0.0)
                    terms = [(self.x[n, a, b], s.bytes / (limit or 1.0)) for n, s in enumerate(self.streams)]
                    self.program.row(terms, most=room / (limit or 1.0))

    def _link(self, source: Node, target: Node) -> float:
        return self.system.cluster.bandwidth(source.name, target.name)
