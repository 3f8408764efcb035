"""The archive of classes: used when it is there, and never in the way."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from towpath.cli.prepare import command
from towpath.spark import class_archive
from towpath.spark.node import server_settings

JAVA = "spark.driver.extraJavaOptions"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _archive() -> Path:
    archive = class_archive.path()
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"no archive at all")
    return archive


def test_spark_starts_without_one(tmp_path: Path) -> None:
    assert "SharedArchiveFile" not in server_settings(tmp_path)[JAVA]


def test_spark_uses_the_one_there_is(tmp_path: Path) -> None:
    archive = _archive()
    assert f"-XX:SharedArchiveFile={archive}" in server_settings(tmp_path, {JAVA: "-Dmine=1"})[JAVA]
    assert "-Dmine=1" in server_settings(tmp_path, {JAVA: "-Dmine=1"})[JAVA]


@pytest.mark.parametrize("given", ["-XX:SharedArchiveFile=/mine.jsa", "-XX:ArchiveClassesAtExit=/mine.jsa"])
def test_an_archive_of_ones_own_is_the_one(tmp_path: Path, given: str) -> None:
    _archive()
    assert server_settings(tmp_path, {JAVA: given})[JAVA].count("jsa") == 1


def test_another_java_has_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "one"))
    one = class_archive.path()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "two"))
    assert class_archive.path() != one


def test_java_passes_over_one_that_does_not_fit() -> None:
    _archive()
    command = ["java", *class_archive.reading().split(), "-version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert ran.stdout == ""
    assert "jsa" not in ran.stderr


def test_prepare_does_nothing_twice() -> None:
    archive = _archive()
    done = CliRunner().invoke(command, ["--if-missing"])
    assert done.exit_code == 0
    assert f"there is already {archive}" in done.output
    assert archive.read_bytes() == b"no archive at all"
