"""Sessions on Spark Connect endpoints, beside sessions of this process."""

from __future__ import annotations

import atexit
import hmac
import logging
import socket
import uuid
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from towpath.config.nodes import ConnectNode, read_token
from towpath.errors import RuntimeFailure
from towpath.spark.failures import reason
from towpath.spark.node import session_settings
from towpath.spark.server import token_of
from towpath.store.layout import Store

log = logging.getLogger(__name__)

USER = "towpath"
PORT = 15002  # of an address that names none
ANSWER_S = 10.0
LISTENS_S = 1.0
# About 15 s in all, instead of PySpark's ten minutes: whether a node is lost is decided elsewhere, and sooner.
RETRIES, RETRY_MS = 6, 4000
# An endpoint that has closed a session, for instance because nobody spoke for an hour, never opens it again.
NOT_THERE = "see that it runs (`towpath node list` for those of this machine) and that its version is PySpark's"
OTHER_TOKEN = "it asks for a token: name a file with it under `token_file` of the node; the nodes of others are theirs"
CLOSED = "INVALID_HANDLE.SESSION_CLOSED"


def connect(name: str, node: ConnectNode, store: Path) -> SparkSession:
    """The session of a node, the same one every time: a new controller finds the carriers of the one before.

    Where the endpoint has closed it, with its carriers, the next one takes its place, for this and later controllers.
    """
    for generation in count():
        try:
            return _connect(name, node, session_id(name, store, generation))
        except RuntimeFailure as error:
            if CLOSED not in str(error.__cause__):
                raise
            log.warning("node %s: the endpoint has closed session %d; its carriers are started again", name, generation)
    raise AssertionError("unreachable")


def session_id(name: str, store: Path, generation: int) -> str:
    """Whoever knows it can take part in the session: only those can tell it who can read the store."""
    text = f"{store.absolute().as_uri()}#{name}"
    text = f"{text}#{generation}" if generation else text
    if key := Store(store).key:
        return str(uuid.UUID(bytes=hmac.digest(key, text.encode(), "sha256")[:16], version=4))
    return str(uuid.uuid5(uuid.NAMESPACE_URL, text))


def _connect(name: str, node: ConnectNode, identity: str) -> SparkSession:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    from towpath.spark.channel import channel

    token = _token(node)
    try:
        # PySpark itself would try for minutes, without a word.
        with socket.create_connection(_host_and_port(node.address), timeout=ANSWER_S):
            pass
        made = channel(node.plain_address, node.options | {"user_id": USER, "session_id": identity, **token})
        session = RemoteSession.builder.channelBuilder(made).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES, max_backoff=RETRY_MS)])
        # Else PySpark says goodbye at the end of the process, and waits for minutes if the endpoint is gone by then.
        atexit.register(session.client.close)
        for key, value in session_settings(node.cores, node.spark).items():
            if session.conf.isModifiable(key):
                session.conf.set(key, value)
    except Exception as error:  # gRPC's own, and PySpark's, by version
        refused = "UNAUTHENTICATED" in str(error)
        raise RuntimeFailure(
            f"node {name}: {node.plain_address} does not answer as a Spark Connect endpoint: {reason(error)}\n"
            f"    -> {OTHER_TOKEN if refused else NOT_THERE}"
        ) from error
    return session  # type: ignore[return-value]  # the two kinds of session have one interface, not one class


def _token(node: ConnectNode) -> dict[str, str]:
    """That of a server of this machine needs no file: its owner can read it."""
    token = token_of(node.address) if node.token_file is None else read_token(Path(node.token_file))
    return {} if token is None else {"token": token}


def listens(address: str) -> bool:
    """Whether anybody accepts connections there. A process that hangs still does."""
    try:
        with socket.create_connection(_host_and_port(address), timeout=LISTENS_S):
            return True
    except OSError:
        return False


def _host_and_port(address: str) -> tuple[str, int]:
    found = urlsplit(address.partition("/;")[0])
    return found.hostname or "", found.port or PORT
