"""Spark Connect servers on this machine, as nodes for jobs: a process each, remembered in a folder of the user's."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pyspark

from towpath.config.nodes import is_loopback
from towpath.config.settings import close_to
from towpath.errors import RuntimeFailure, UnknownNameError
from towpath.spark import processes
from towpath.spark.node import QUICK_JAVA, TASKS_PER_CORE, server_settings
from towpath.store import durable
from towpath.store.private import UMASK, private_folder, private_opener, write_private

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
PATIENCE_S = 90.0
LOG_LINES = 15
# Spark would end a session, and with it its carriers, when no controller has spoken to it for an hour.
PATIENT = {"spark.connect.session.manager.defaultSessionTimeout": "-1"}
JSON_LOG = {"spark.log.structuredLogging.enabled": "true"}
HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # both Spark and PySpark read it from the environment
TOKEN_BYTES = 32
# By its shape and not by the token itself: everybody can read the arguments of a process.
CLEANING = ["sed", "--unbuffered", r's/\(token=\)[^][:space:];,"]*/\1.../g']


@dataclass(frozen=True)
class Server:
    name: str
    pid: int
    born: int  # when the kernel started the process, to distinguish it from another one of the same number
    address: str
    cores: int
    memory: str
    log: str
    token_file: str = ""  # of a server that an earlier version started: it asks for none

    @property
    def alive(self) -> bool:
        return _born(self.pid) == self.born


def folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "towpath" / "nodes"


def servers() -> dict[str, Server]:
    """All that were started and not stopped, alive or not."""
    found: dict[str, Server] = {}
    for file in sorted(folder().glob("*.json")):
        with suppress(FileNotFoundError):  # others start and stop servers, too
            found[file.stem] = Server(**json.loads(file.read_text()))
    return found


def start(
    name: str,
    cores: int,
    memory: str,
    port: int | None,
    spark: Mapping[str, str],
    look: Callable[[], None],
    *,
    master: str | None = None,
    json_log: bool = False,
) -> Server:
    """Starts a server and waits until it answers; `look` is called meanwhile.

    Whoever speaks to it needs its token, which is new with every start. With `master`, a cluster does the work: `cores`
    are the cluster's then, and `memory` is of the server alone.
    """
    if master is not None:
        _refuse_unreachable(master, spark)
    known = servers().get(name)
    if known is not None and known.alive:
        raise RuntimeFailure(f"node {name} runs already at {known.address} (process {known.pid}); stop it first")
    place = folder() / name
    private_folder(folder())
    private_folder(place)
    log = place / "spark.log"
    port = port or _free_port()
    settings = _settings(place, port, cores, spark, master) | (JSON_LOG if json_log else {})
    token_file = place / "token"
    token = _new_token(token_file)
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--class", SERVER]
    command += ["--name", f"towpath-{name}", "--master", master or f"local[{cores * TASKS_PER_CORE}]"]
    command += ["--driver-memory", memory]
    command += [text for key, value in settings.items() for text in ("--conf", f"{key}={value}")]
    with _without_tokens(log) as output:
        process = subprocess.Popen(
            [*command, "spark-internal"],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=place,
            # The token here and not as a setting: everybody can read the arguments of a process.
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_AUTH_SOCKET_TIMEOUT": "120", TOKEN: token},
            start_new_session=True,  # Ctrl-C here is not for it
            umask=UMASK,
        )
    _wait(process, port, log, look)
    address, born = f"sc://127.0.0.1:{port}", _born(process.pid) or 0
    server = Server(name, process.pid, born, address, cores, memory, str(log), str(token_file))
    _write(server)
    return server


@contextmanager
def _without_tokens(log: Path) -> Iterator[IO[bytes]]:
    """Where a server writes what it says, for its log to have it without tokens.

    Spark's worker for micro-batches prints the address that it connects to with the token in it, past every setting of
    the log. What takes it out goes on when this process ends, and ends when the server and its workers have.
    """
    with open(log, "wb", opener=private_opener) as file:
        bytewise = os.environ | {"LC_ALL": "C"}  # a token may stand beside what is no text
        cleaning = subprocess.Popen(CLEANING, stdin=subprocess.PIPE, stdout=file, env=bytewise, start_new_session=True)
    assert cleaning.stdin is not None, "it is a pipe"
    with cleaning.stdin as pipe:
        yield pipe


def _settings(place: Path, port: int, cores: int, spark: Mapping[str, str], master: str | None) -> dict[str, str]:
    binding = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    settings = PATIENT | server_settings(place, spark) | binding
    if master is not None:
        settings["spark.cores.max"] = str(cores)
    if HOST in spark and BIND not in spark:
        del settings[BIND]  # Spark takes the host for it
    return settings


def _refuse_unreachable(master: str, spark: Mapping[str, str]) -> None:
    """Workers elsewhere have to reach the server, which listens on this machine only unless its user says otherwise."""
    found = re.fullmatch(r"spark://(.+):\d+", master)
    here = master.startswith("local") or (found is not None and is_loopback(found[1]))
    if not here and HOST not in spark:
        raise RuntimeFailure(
            f"the workers of {master} could not reach this server: Spark listens on this machine only\n"
            f"    -> give --conf {HOST}=ADDRESS with an address of this machine that only the cluster can reach, and "
            "--conf spark.authenticate=true with the cluster's secret (`towpath docs security`)"
        )


def _new_token(file: Path) -> str:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with durable.writing(file, lasting=False) as scratch:
        write_private(scratch, token)
    return token


def token_of(address: str) -> str | None:
    """The token that a server of this machine asks for, if its owner asks; None for all others."""
    parts = urlsplit(address)
    for server in servers().values():
        port = urlsplit(server.address).port
        if parts.port == port and is_loopback(parts.hostname or "") and server.token_file and server.alive:
            with suppress(FileNotFoundError):  # it is being stopped
                return Path(server.token_file).read_text(encoding="utf-8")
    return None


def stop(name: str, patience_s: float = 10.0) -> None:
    """Asks it to end; one that has not ended after `patience_s` is killed."""
    server = servers().get(name)
    if server is None:
        close = close_to(name, servers())
        hint = f"did you mean {close}?" if close else "`towpath node list` shows those there are"
        raise UnknownNameError(f"no node {name!r} was started on this machine; {hint}")
    for number in (signal.SIGTERM, signal.SIGKILL):
        if server.alive:
            os.killpg(server.pid, number)
        end = time.monotonic() + patience_s
        while server.alive and time.monotonic() < end:
            time.sleep(0.1)
    (folder() / f"{name}.json").unlink()
    if server.token_file:
        Path(server.token_file).unlink(missing_ok=True)


@contextmanager
def temporary(names: Sequence[str], cores: int, memory: str) -> Iterator[dict[str, Server]]:
    """Servers that are started together, and gone afterwards with all that they wrote. For runs of minutes."""

    def begin(name: str) -> Server:
        return start(name, cores, memory, None, QUICK_JAVA, lambda: None)

    try:
        with ThreadPoolExecutor(len(names)) as together:
            found = list(together.map(begin, names))
        yield dict(zip(names, found, strict=True))
    finally:
        for name in servers().keys() & set(names):
            stop(name)
            shutil.rmtree(folder() / name, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path, look: Callable[[], None]) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        look()
        with socket.socket() as probe:
            probe.settimeout(0.5)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    last = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
    raise RuntimeFailure(f"the server did not answer at port {port}; the end of {log}:\n{last}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _born(pid: int) -> int | None:
    """When a process began, in the kernel's own measure; with its id it names a process for good."""
    fields = processes.stat(pid)
    return int(fields[processes.BORN]) if fields and fields[processes.STATE] != "Z" else None


def _write(server: Server) -> None:
    durable.write_json(folder() / f"{server.name}.json", asdict(server), lasting=False)
