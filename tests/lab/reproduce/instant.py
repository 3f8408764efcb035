"""A node without Spark: every look at it finds a micro-batch that has read whatever there was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from towpath.job import Job
from towpath.plan.templates import Template
from towpath.runtime.carriers import BatchDone, CarrierEvent
from towpath.runtime.fake import FakeNode
from towpath.streams.sources import FilesSource


class InstantNode(FakeNode):
    def __init__(self, job: Job) -> None:
        super().__init__()
        self._folders = {
            definition.stream.schema_class: Path(definition.source.path)
            for definition in job.streams.values()
            if isinstance(definition.source, FilesSource)
        }
        self._files: dict[Path, tuple[int, int]] = {}  # newest event time and rows

    def events(self) -> list[CarrierEvent]:
        return [self._batch(carrier, template) for carrier, template in self.running.items()]

    def _batch(self, carrier: str, template: Template) -> BatchDone:
        number = self.next_batch(carrier)
        files = [self._read(self._folders[schema_class]) for schema_class in template.family.classes]
        newest = [max((at for at, _ in some.values()), default=None) for some in files]
        horizon = min((at or 0 for at in newest), default=0) - template.family.reach_us
        held = sum(rows for some in files for at, rows in some.values() if at >= horizon)
        return BatchDone(
            carrier, number, self.versions[carrier], tuple(newest), None, 1, (), held, 0.01, {}, first=number == 0
        )

    def _read(self, folder: Path) -> Mapping[Path, tuple[int, int]]:
        found = sorted(folder.glob("*.parquet"))
        for file in found:
            if file not in self._files:
                times = pq.read_table(file, columns=["at"])["at"]
                self._files[file] = int(pc.max(times).value), len(times)
        return {file: self._files[file] for file in found}
