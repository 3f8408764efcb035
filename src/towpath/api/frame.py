"""Results for people and their libraries: a table in a notebook; Arrow, pandas and Polars for all else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from towpath import html
from towpath.results.render import cells, is_number

if TYPE_CHECKING:
    import pandas as pd

    from towpath.vector.frames import DataFrame

SHOWN = 10  # rows, of the beginning and of the end each


@dataclass(frozen=True, repr=False)
class Frame:
    """What a query had answered when it was asked for. Whatever takes Arrow takes it as it is."""

    name: str
    arrow: pa.Table

    def to_arrow(self) -> pa.Table:
        return self.arrow

    def to_pandas(self) -> pd.DataFrame:
        return self.arrow.to_pandas()

    def to_polars(self) -> DataFrame:
        from towpath.vector.frames import to_polars  # most need no Polars, which takes long to import

        return to_polars(self.arrow)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    @property
    def columns(self) -> list[str]:
        return list(self.arrow.column_names)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{self.name}: {self._size}>"

    def _repr_html_(self) -> str:
        right = [n for n, field in enumerate(self.arrow.schema) if is_number(field.type)]
        rows = [*_rows(self.arrow.slice(0, SHOWN))]
        if len(self) > SHOWN:
            last = self.arrow.slice(max(SHOWN, len(self) - SHOWN))
            gap = [["…"] * len(self.columns)] if len(self) > 2 * SHOWN else []
            rows += [*gap, *_rows(last)]
        return html.table(self.columns, rows, right, f"{self.name}: {self._size}")

    @property
    def _size(self) -> str:
        return f"{len(self):,} row{'' if len(self) == 1 else 's'}"


def _rows(table: pa.Table) -> list[list[str]]:
    columns = [cells(column) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]
