"""What workers have written becomes a micro-batch of the log, once. Without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from towpath.spark.universal_worker import FILE
from towpath.spark.writers import by_workers
from towpath.vector.evaluate import RESULTS


@dataclass
class Written:
    """What the tasks of a micro-batch have reported."""

    files: list[Path]

    def collect(self) -> list[dict[str, Any]]:
        return [{FILE: str(file)} for file in self.files]


def put(tmp_path: Path, name: str, fragment: int) -> Path:
    folder = tmp_path / "written"
    folder.mkdir(exist_ok=True)
    columns = {f.name: [fragment] if f.name == "_fragment" else pa.nulls(1, f.type) for f in RESULTS}
    pq.write_table(pa.table(columns, schema=RESULTS), folder / name)
    return folder / name


def commit(tmp_path: Path, *files: Path) -> None:
    by_workers(tmp_path / "results", tmp_path / "written")(cast(DataFrame, Written(list(files))), 7)


def fragments(tmp_path: Path) -> list[int]:
    batch = tmp_path / "results" / "batch=7"
    assert (batch / "_SUCCESS").exists()
    return sorted(n for f in batch.glob("*.parquet") for n in pq.read_table(f)["_fragment"].to_pylist())


def test_files_of_tasks_that_failed_do_not_count(tmp_path: Path) -> None:
    good, again = put(tmp_path, "a", 1), put(tmp_path, "b", 2)
    put(tmp_path, "first attempt of b", 2)
    commit(tmp_path, good, again)
    assert fragments(tmp_path) == [1, 2]
    assert not (tmp_path / "written").exists()


def test_a_repeated_batch_writes_nothing(tmp_path: Path) -> None:
    commit(tmp_path, put(tmp_path, "a", 1))
    commit(tmp_path, put(tmp_path, "b", 1), put(tmp_path, "c", 2))
    assert fragments(tmp_path) == [1]
    assert not (tmp_path / "written").exists()


def test_a_batch_that_was_cut_off_is_written_anew(tmp_path: Path) -> None:
    one, two = put(tmp_path, "a", 1), put(tmp_path, "b", 2)
    two.unlink()
    with pytest.raises(FileNotFoundError):
        commit(tmp_path, one, two)
    assert not (tmp_path / "results" / "batch=7" / "_SUCCESS").exists()
    commit(tmp_path, put(tmp_path, "c", 1), put(tmp_path, "d", 2))
    assert fragments(tmp_path) == [1, 2]


def test_a_batch_without_results_has_a_file_with_the_columns(tmp_path: Path) -> None:
    commit(tmp_path)
    assert fragments(tmp_path) == []
    (file,) = (tmp_path / "results" / "batch=7").glob("*.parquet")
    assert pq.read_schema(file).equals(RESULTS)
