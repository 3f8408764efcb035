"""Values in texts of JSON on both kinds of carriers, with answers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.json_documents import DOCUMENTS, NESTED, PATHS
from tests.spark.batches import answers, session

from towpath.plan import CarrierKinds
from towpath.schema import Column, Stream, Type

pytestmark = pytest.mark.spark

COLUMNS = (Column("n", Type.INT), Column("text", Type.STRING), Column("at", Type.TIMESTAMP))
KNOWN = {"s": Stream("s", COLUMNS, "at")}


@pytest.mark.parametrize("carriers", [CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL])
def test_values_in_texts_of_json(tmp_path: Path, carriers: CarrierKinds) -> None:
    documents = [document for document, _ in DOCUMENTS] + [NESTED]
    columns = {
        "n": pa.array(range(len(documents)), pa.int32()),
        "text": pa.array(documents, pa.string()),
        "at": pa.array(range(len(documents)), pa.timestamp("us", tz="UTC")),
    }
    paths = [path.replace("'", "''") for path, _ in PATHS]
    last = f"WHERE n = {len(documents) - 1}"
    queries = [
        "SELECT n, json_value(text, '$.a') AS v FROM s",
        *(f"SELECT json_value(text, '{path}') AS v FROM s {last}" for path in paths),
        f"SELECT text -> 'a' -> 'b' -> 1 ->> 'c d' AS v FROM s {last}",
        f"SELECT json_value('{{\"b\": ' || (text -> 'a' -> 'b' ->> 0) || '}}', '$.b') AS v FROM s {last}",
        f"SELECT CAST(json_value(text, '$[\"b-c\"]') AS INT) + 1 AS v FROM s {last}",
        "SELECT text ->> 'a' AS v, count(*) AS n FROM s [RANGE 1 SECOND] WHERE text ->> 'a' IN ('1', 'true') "
        "GROUP BY text ->> 'a'",
    ]
    first, *others = answers(session(tmp_path), queries, KNOWN, {"s": pa.table(columns)}, carriers)
    found = {row["n"]: row["v"] for row in first.to_pylist()}
    wrong = {str(d)[:60]: (found[n], expected) for n, (d, expected) in enumerate(DOCUMENTS) if found[n] != expected}
    assert wrong == {}
    values = [table.to_pylist() for table in others]
    assert {path: rows[0]["v"] for (path, _), rows in zip(PATHS, values, strict=False)} == dict(PATHS)
    assert [rows[0]["v"] for rows in values[len(PATHS) : -1]] == ["x", "10", 7]
    ones = sum(value == "1" for _, value in DOCUMENTS)
    assert sorted(map(str, values[-1])) == [f"{{'v': '1', 'n': {ones}}}", "{'v': 'true', 'n': 1}"]
