from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from towpath.control.observe.sampling import SAMPLED, emitted


def write(root: Path, batch: int, fragments: list[int], *, committed: bool = True) -> None:
    folder = root / f"batch={batch}"
    folder.mkdir()
    pq.write_table(pa.table({"_fragment": pa.array(fragments, pa.int32()), "v": fragments}), folder / "part-0.parquet")
    if committed:
        (folder / "_SUCCESS").touch()


def test_rows_are_counted_by_micro_batch_and_fragment(tmp_path: Path) -> None:
    write(tmp_path, 3, [1, 1, 2])
    write(tmp_path, 4, [2])
    assert emitted(tmp_path, 2, 4) == {3: {1: 2, 2: 1}, 4: {2: 1}}
    assert emitted(tmp_path, 3, 4) == {4: {2: 1}}


def test_what_is_not_committed_or_was_merged_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, 3, [1], committed=False)
    (tmp_path / "batch=4").mkdir()
    (tmp_path / "batch=4" / "_SUCCESS").touch()
    assert emitted(tmp_path, -1, 9) == {4: {}}


def test_a_sample_is_of_the_newest(tmp_path: Path) -> None:
    for batch in range(SAMPLED + 3):
        write(tmp_path, batch, [1])
    assert sorted(emitted(tmp_path, -1, SAMPLED + 2)) == list(range(3, SAMPLED + 3))
