"""An entry under `tables` of a job file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from towpath.config.columns import (
    Kind,
    WrittenFields,
    WrittenSchema,
    check_fields,
    check_flat,
    check_schema,
    named,
    paths,
)
from towpath.config.settings import Location, Settings, refusal
from towpath.schema import Stream, column_of, reference_table


class FileTable(Settings):
    """A file that holds the whole table."""

    type: Literal["file"]
    path: Location = Field(examples=["./currencies.csv"])
    format: Literal["csv", "parquet"] = Field(examples=["csv"])
    header: bool = True  # of CSV
    fields: WrittenFields = Field({}, examples=["{user_id: user.id}"])

    @field_validator("path")
    @classmethod
    def _is_no_folder(cls, path: str) -> str:
        if "://" in path or Path(path).is_dir():
            what = "is elsewhere" if "://" in path else "is a folder"
            hint = "a table is one file, which holds all of it"
            raise refusal(f"expected a file of this machine, but {path} {what}", hint)
        return path

    @field_validator("header")
    @classmethod
    def _is_csv(cls, header: bool, info: ValidationInfo) -> bool:
        if info.data.get("format", "csv") != "csv":
            raise refusal(f"a {info.data['format']} file has no header line", "remove it, or set format: csv")
        return header


class TableText(Settings):
    """A table as written."""

    source: FileTable = Field(examples=["{type: file, path: ./currencies.csv, format: csv}"])
    columns: WrittenSchema = Field(alias="schema", examples=["{code: string, rate: double}"])

    @field_validator("columns")
    @classmethod
    def _are_columns(cls, columns: dict[str, Kind], info: ValidationInfo) -> dict[str, Kind]:
        if not columns:
            raise refusal("is missing", "name the columns: schema: {code: string, rate: double}")
        check_schema(columns)
        source = info.data.get("source")
        if source:
            check_fields(columns, source.fields)
            if source.format == "csv":
                check_flat(columns, source.fields, source.header)
        return columns


TABLE_SOURCES: dict[str, type[Settings]] = {"file": FileTable}


@dataclass(frozen=True)
class TableDef:
    table: Stream  # as a catalog has it
    source: FileTable


def define(name: str, text: TableText) -> TableDef:
    source = text.source.model_copy(update={"fields": paths(text.columns, text.source.fields)})
    return TableDef(reference_table(name, tuple(column_of(*item) for item in named(text.columns).items())), source)
