"""What runs on a node for its manager: it reports, and does what it is asked to do about connections."""

from __future__ import annotations

from collections.abc import Sequence

from towpath.policies.dcape.messages import (
    Configure,
    Configured,
    LoadReport,
    Message,
    RequestsDone,
    WorkRequest,
    WorkRequests,
    size,
)
from towpath.policies.dcape.monitor import Increments, changes_of
from towpath.runtime.actors import Arrived, Measured, PolicyEvent, PolicyInstruction, Send


class Agent:
    def __init__(self, node: str, manager: str, tolerance: float) -> None:
        self.address = node
        self.connections: set[tuple[str, str, str, str]] = set()  # send or receive, fragment, peer, host of the peer
        self._manager = manager
        self._increments = Increments(tolerance)

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        match event:
            case Measured(_, statistics):
                changes = self._increments.of(changes_of(statistics))
                return [self._send(LoadReport(changes))] if changes else []
            case Arrived(_, _, Configure()):
                return [self._send(Configured())]
            case Arrived(_, _, WorkRequests(origin, number, requests)):
                for request in requests:
                    self._connect(request)
                here = tuple((r.fragment, self.address) for r in requests if r.verb in ("prepare", "release"))
                return [self._send(RequestsDone(origin, number, here))]
            case _:
                return []

    def _send(self, message: Message) -> Send:
        return Send(self._manager, message, size(message))

    def _connect(self, request: WorkRequest) -> None:
        fragment, peer, host = request.fragment, request.peer, request.host
        match request.verb:
            case "send_data" | "receive_data" if host != self.address:
                self.connections.add((request.verb, fragment, peer, host))
            case "stop_send":
                self.connections.discard(("send_data", fragment, peer, host))
            case "stop_receive":
                self.connections.discard(("receive_data", fragment, peer, host))
            case "activate":
                self._increments.forget()  # the manager did not listen to what was said of it while it was elsewhere
            case "deactivate":
                self.connections = {c for c in self.connections if c[1] != fragment}
