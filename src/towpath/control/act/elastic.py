"""Carries the decisions of scaling.py out: nodes are started and drained while the job goes on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Protocol

from towpath.control.act.engine import Engine
from towpath.control.decide.scaling import Bounds, Grow, Scaling, Shrink
from towpath.control.state.history import EventKind
from towpath.errors import NodeRefused, TowpathError
from towpath.runtime.actors import NeedNode, ReleaseNode, ScalingWish
from towpath.runtime.carriers import Runtime

log = logging.getLogger(__name__)


class Starter(Protocol):
    """Who has nodes to give."""

    cores: int  # of each

    def start(self, node: str) -> Future[None]:
        """Begins to start one; the future is done when it answers."""

    def open(self, node: str) -> Runtime:
        """Of one that answers."""

    def stop(self, node: str) -> None: ...


@dataclass(frozen=True)
class _Coming:
    node: str
    reason: str
    answers: Future[None]
    runtime: Runtime | None = None


class Elastic:
    def __init__(self, engine: Engine, starter: Starter, bounds: Bounds, own: Mapping[str, int]) -> None:
        """`own`: the nodes that scaling had started before the job was last stopped, with their cores."""
        self._engine = engine
        self._starter = starter
        self._scaling = Scaling(bounds)
        self.own = dict(own)
        self._coming: _Coming | None = None
        self._going: Shrink | None = None
        self._wish: ScalingWish | None = None

    def ask(self, wish: ScalingWish) -> None:
        """What a policy wants; it is looked at with the next step, unless a node is coming or going then."""
        self._wish = wish

    def step(self, at: float, loads: Mapping[str, float]) -> None:
        """`loads` of the nodes that take queries."""
        wish, self._wish = self._wish, None
        if self._coming is not None:
            self._arrive(self._coming)
        elif self._going is not None:
            self._leave(self._going)
        else:
            self._carry_out(self._scaling.decide(at, loads, self.own.keys()) or self._wanted(wish, loads))

    def _wanted(self, wish: ScalingWish | None, loads: Mapping[str, float]) -> Grow | Shrink | None:
        match wish:
            case NeedNode(reason):
                return self._scaling.grow(loads, self.own, reason)
            case ReleaseNode(nodes, reason):
                return self._scaling.shrink(loads, self.own, nodes, reason)
        return None

    def _carry_out(self, decided: Grow | Shrink | None) -> None:
        match decided:
            case Grow(node, reason):
                log.info("starting node %s: %s", node, reason)
                self._coming = _Coming(node, reason, self._starter.start(node))
            case Shrink(node, reason) as shrink:
                log.info("draining node %s: %s", node, reason)
                try:
                    self._engine.drain_node(node)
                except NodeRefused as error:
                    self._engine.add_history(EventKind.REFUSED, f"node {node} stays: {error}", nodes=(node,))
                    self._scaling.reset()
                    return
                self._going = shrink

    def _arrive(self, coming: _Coming) -> None:
        if not coming.answers.done():
            return
        try:
            coming.answers.result()
            runtime = coming.runtime or self._starter.open(coming.node)
        except TowpathError as error:
            self._engine.add_history(
                EventKind.REFUSED, f"node {coming.node} could not be started: {error}", nodes=(coming.node,)
            )
            self._coming = None
            self._scaling.reset()
            return
        if runtime.lost is not None:  # it is being opened
            self._coming = replace(coming, runtime=runtime)
            return
        self._coming = None
        self._scaling.reset()
        self.own[coming.node] = self._starter.cores
        self._engine.add_node(coming.node, runtime, coming.reason)

    def _leave(self, going: Shrink) -> None:
        if self._engine.controller.node_state(going.node) != "drained":
            return
        self._going = None
        self._scaling.reset()
        self._engine.remove_node(going.node, going.reason)
        del self.own[going.node]
        self._starter.stop(going.node)
