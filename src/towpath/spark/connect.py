"""Sessions on Spark Connect endpoints, beside sessions of this process."""

from __future__ import annotations

import atexit
import socket
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from towpath.errors import RuntimeFailure
from towpath.nodes import ConnectNode
from towpath.spark.failures import reason
from towpath.spark.node import session_settings

USER = "towpath"
PORT = 15002  # of an address that names none
ANSWER_S = 10.0
LISTENS_S = 1.0
# About 15 s in all, instead of PySpark's ten minutes: whether a node is lost is decided elsewhere, and sooner.
RETRIES, RETRY_MS = 6, 4000


def connect(name: str, node: ConnectNode, store: Path) -> SparkSession:
    """The session of a node, the same one every time: a new controller finds the carriers of the one before."""
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    identity = uuid.uuid5(uuid.NAMESPACE_URL, f"{store.absolute().as_uri()}#{name}")
    options = {"user_id": USER, "session_id": str(identity)}
    if node.token_file is not None:
        options["token"] = Path(node.token_file).read_text(encoding="utf-8").strip()
    separator = ";" if "/;" in node.address else "/;"
    address = node.address.rstrip(";") + separator + ";".join(f"{key}={value}" for key, value in options.items())
    try:
        # PySpark itself would try for minutes, without a word.
        with socket.create_connection(_host_and_port(node.address), timeout=ANSWER_S):
            pass
        session = RemoteSession.builder.remote(address).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES, max_backoff=RETRY_MS)])
        # Else PySpark says goodbye at the end of the process, and waits for minutes if the endpoint is gone by then.
        atexit.register(session.client.close)
        for key, value in session_settings(node.cores, node.spark).items():
            if session.conf.isModifiable(key):
                session.conf.set(key, value)
    except Exception as error:  # gRPC's own, and PySpark's, by version
        raise RuntimeFailure(
            f"node {name}: {node.address} does not answer as a Spark Connect endpoint: {reason(error)}\n"
            "    -> see that it runs (`towpath node list` for those of this machine) and that its version is PySpark's"
        ) from error
    return session  # type: ignore[return-value]  # the two kinds of session have one interface, not one class


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
