"""The queries of Nexmark that read no view, all at once on both kinds of carriers, over complete tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lang.nexmark import catalog, database, queries
from tests.spark.batches import answers, session

from towpath.lang import parse
from towpath.plan import CarrierKinds
from towpath.verify import differences, expected

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("carriers", [CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL])
def test_carriers_answer_as_duckdb_does(tmp_path: Path, carriers: CarrierKinds) -> None:
    con, known = database(), catalog()
    chosen = {q.name: q.sql for q in queries() if not q.missing and not parse(q.sql, known).views}
    assert {"q10", "q14", "q21", "q22"} <= set(chosen)
    tables = {name: con.table(name).to_arrow_table() for name in known}
    found = answers(session(tmp_path), list(chosen.values()), known, tables, carriers)
    wrong = {
        name: str(differences(expected(con, parse(sql, known), known), answer))
        for (name, sql), answer in zip(chosen.items(), found, strict=True)
        if differences(expected(con, parse(sql, known), known), answer)
    }
    assert wrong == {}
