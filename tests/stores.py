"""A store as a job leaves it, without running one."""

from __future__ import annotations

from pathlib import Path

from results.logs import Row, write_batch
from towpath.control.journal.journal import Journal
from towpath.control.state.records import BEGINNING_US, FragmentRecord, PartRecord, QueryRecord
from towpath.plan.serial import PipelineText
from towpath.store.layout import Store

SECOND = 1_000_000
ROWS = [Row(1, n * SECOND, n, born=n * SECOND) for n in range(1, 7)]


def make_store(root: Path) -> Path:
    """Queries over the rows 1 to 6 of one fragment, at the seconds 1 to 6."""
    journal = Journal(Store(root).journal)
    journal.save([FragmentRecord(1, "signature", "c0", PipelineText("shape", "[]"), 0, 0)])
    for number, (name, running, settled, from_us, until_us) in enumerate(
        [
            ("replaced", False, True, None, SECOND),
            ("all", True, True, None, None),
            ("since", True, True, 3 * SECOND, None),
            ("gone", False, True, 2 * SECOND, 5 * SECOND),
            ("new", True, False, None, None),
            ("never", False, True, None, BEGINNING_US),
            ("replaced", True, True, 6 * SECOND, None),
        ],
        start=1,
    ):
        query = QueryRecord(number, name, f"SELECT v FROM {name}", running, series=number)
        columns = (("value", "v"), ("text", "s"))
        part = PartRecord(number, 0, 0, 1, columns, False, settled, from_us, until_us, done=until_us is not None)
        journal.save([query, part])
    journal.close()
    write_batch(Store(root).results("c0"), 0, ROWS[:3])
    write_batch(Store(root).results("c0"), 1, ROWS[3:])
    return root
