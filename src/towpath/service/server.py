"""Answers HTTP in a thread beside the loop that runs the job, on this machine only."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager

import uvicorn
from starlette.types import ASGIApp

from towpath.errors import ServiceError
from towpath.service import app, service_file
from towpath.service.limits import Connection, OwnPages
from towpath.service.metrics import NOBODY, Scraping
from towpath.service.request_queue import RequestQueue
from towpath.service.verbs import Verbs
from towpath.store.layout import Store

LOOPBACK = "127.0.0.1"
GRACE_S = 2  # for answers that are on their way when the service stops


@contextmanager
def serving(
    verbs: Verbs,
    requests: RequestQueue,
    store: Store,
    host: str = LOOPBACK,
    port: int = 0,
    names: Collection[str] = (),
    beside: app.Beside | None = None,
    scraping: Scraping = NOBODY,
) -> Iterator[str]:
    """Answers as long as this lasts; gives the address. The store knows who may ask, and where.

    `names`: under which a proxy before it is asked, beside those of this machine.
    """
    with closing(_bound(host, port)) as bound:
        name, number = bound.getsockname()[:2]
        address = f"http://{f'[{name}]' if ':' in name else name}:{number}"
        token, reader = service_file.new_token(), service_file.new_token() if beside else ""
        built = app.build(verbs, requests, token, beside=beside, reader_token=reader, scraping=scraping)
        with (
            _running(OwnPages(built, names), bound),
            _closed_at_end(requests),
            service_file.written(store.service, service_file.ServiceAddress(address, os.getpid(), token, reader)),
        ):
            yield address


def refuse_public_address(host: str) -> None:
    if not service_file.is_loopback(host):
        raise ServiceError(
            f"expected an address of this machine only (127.0.0.1, ::1 or localhost), got {host!r}: the service has no "
            "TLS\n    -> reach it from elsewhere through an SSH tunnel or a proxy with TLS; `towpath docs service` "
            "shows how"
        )


@contextmanager
def _closed_at_end(requests: RequestQueue) -> Iterator[None]:
    try:
        yield
    finally:
        requests.close()


def _bound(host: str, port: int) -> socket.socket:
    refuse_public_address(host)
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ServiceError(
            f"{host}:{port}: the service cannot listen there: {error.strerror}; leave --port out to get a free one"
        ) from error


@contextmanager
def _running(application: ASGIApp, bound: socket.socket) -> Iterator[None]:
    config = uvicorn.Config(
        application,
        http=Connection,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="service", daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()
