"""What Spark Connect servers of this machine are started with; test_connect.py starts them."""

from __future__ import annotations

import stat
import subprocess
import time
from pathlib import Path

import pytest

from towpath.errors import RuntimeFailure
from towpath.spark import server
from towpath.spark.connect import session_id
from towpath.spark.server import BIND, HOST
from towpath.store.layout import Store


@pytest.mark.parametrize("master", [None, "spark://127.0.0.1:7077"])
def test_a_server_listens_on_this_machine_only_whoever_does_the_work(tmp_path: Path, master: str | None) -> None:
    settings = server._settings(tmp_path, 1, 2, {}, master)
    listening = (HOST, BIND, "spark.connect.grpc.binding.address")
    assert {settings[key] for key in listening} == {"127.0.0.1"}


def test_where_it_is_told_to_listen_it_listens_there_alone(tmp_path: Path) -> None:
    settings = server._settings(tmp_path, 1, 2, {HOST: "10.0.0.1"}, "spark://10.0.0.2:7077")
    assert settings[HOST] == "10.0.0.1" and BIND not in settings
    assert server._settings(tmp_path, 1, 2, {HOST: "a", BIND: "b"}, "yarn")[BIND] == "b"


@pytest.mark.parametrize("master", ["spark://10.0.0.2:7077", "yarn", "k8s://https://host:443"])
def test_a_cluster_whose_workers_could_not_reach_the_server_is_refused(
    tmp_path: Path, master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(RuntimeFailure, match=r"--conf spark\.driver\.host=ADDRESS"):
        server.start("far", 2, "1g", None, {}, lambda: None, master=master)


def test_the_session_of_a_store_cannot_be_guessed_and_stays_the_same(tmp_path: Path) -> None:
    stores = [tmp_path / name for name in ("a", "b", "old")]
    Store(stores[2]).root.mkdir()
    Store(stores[2]).journal.touch()  # made before there were keys: its carriers run in the session they began in
    for _ in range(2):
        for store in stores:
            Store(store).lock().close()
    named = {session_id("far", store, generation) for store in stores[:2] for generation in (0, 1)}
    assert len(named) == 4
    assert session_id("far", stores[0], 0) in named
    (stores[0] / "key").unlink()
    assert session_id("far", stores[0], 0) not in named
    assert (stores[1] / "key").read_bytes() != b"" and not (stores[2] / "key").exists()


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "starting with url sc://localhost:1/;token=abc-D_1;x=2 and",
            "starting with url sc://localhost:1/;token=...;x=2 and",
        ),
        ("url sc://localhost:1/;user_id=u;token=abc.", "url sc://localhost:1/;user_id=u;token=..."),
        ('{"msg":"url sc://h:1/;token=abc","level":"INFO"}', '{"msg":"url sc://h:1/;token=...","level":"INFO"}'),
        ("no tokens here: tokens, token", "no tokens here: tokens, token"),
        ("odd bytes: \udcff\udcfe;token=\udcffa b", "odd bytes: \udcff\udcfe;token=... b"),
    ],
)
def test_the_log_of_a_server_has_no_token(tmp_path: Path, said: str, kept: str) -> None:
    log = tmp_path / "spark.log"
    with server._without_tokens(log) as output:
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=output)
    process.communicate(f"{said}\n".encode(errors="surrogateescape"))
    end = time.monotonic() + 10
    while (found := log.read_text(errors="surrogateescape")) != f"{kept}\n":
        assert time.monotonic() < end, found
        time.sleep(0.01)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
