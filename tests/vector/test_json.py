"""Values in texts of JSON: universal carriers and the engine that answers are checked against, without Spark."""

from __future__ import annotations

import json

import duckdb
import polars as pl
import pytest
from tests.json_documents import DOCUMENTS, NESTED, PATHS

from towpath.lang.json_paths import steps
from towpath.vector import json_texts
from towpath.verify import texts


def of_polars(documents: list[str | None], path: str) -> list[str | None]:
    frame = pl.DataFrame({"text": documents}, schema={"text": pl.String})
    return frame.select(json_texts.value(pl.col("text"), steps(path)))["text"].to_list()


def of_duckdb(documents: list[str | None], path: str) -> list[str | None]:
    with duckdb.connect() as con:
        texts.register(con)
        call = f"SELECT {texts.JSON_VALUE}($1::VARCHAR, $2)"
        found = (con.execute(call, [document, json.dumps(steps(path))]).fetchone() for document in documents)
        return [row[0] for row in found if row is not None]


@pytest.mark.parametrize("engine", [of_polars, of_duckdb])
def test_documents(engine: object) -> None:
    found = engine([document for document, _ in DOCUMENTS], "$.a")  # type: ignore[operator]
    wrong = {str(d)[:60]: (f, e) for (d, e), f in zip(DOCUMENTS, found, strict=True) if f != e}
    assert wrong == {}


@pytest.mark.parametrize("engine", [of_polars, of_duckdb])
def test_paths(engine: object) -> None:
    assert {path: engine([NESTED], path)[0] for path, _ in PATHS} == dict(PATHS)  # type: ignore[operator]
