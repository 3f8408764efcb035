"""The cases in data/: queries and the plans they become.

`python -m tests.plan.cases` writes what comes out now into the files; read the difference before you keep it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from towpath.lab.testing import example_workload
from towpath.lang import parse
from towpath.plan.build import build, optimise
from towpath.plan.fragments import fragments
from towpath.plan.operators import LogicalOperator
from towpath.plan.pipeline import Pipeline, pipelines
from towpath.plan.rewrites import REWRITES
from towpath.plan.show import fragment_words, nodes, parameter_words, template_words, tree
from towpath.plan.templates import template_of
from towpath.schema import Catalog, Column, Stream, Type

DATA = Path(__file__).parent / "data"
NAMES = [rewrite.__name__ for rewrite in REWRITES]


def _catalog() -> Catalog:
    streams = yaml.safe_load((DATA / "catalog.yaml").read_text())
    return {
        name: Stream(name, tuple(Column(c, Type(t)) for c, t in about["columns"].items()), "at", rate=about["rate"])
        for name, about in streams.items()
    }


CATALOG = _catalog()


def planned(sql: str, catalog: Catalog = CATALOG) -> LogicalOperator:
    return optimise(build(parse(sql, catalog)), catalog)


def pipeline(sql: str, catalog: Catalog = CATALOG) -> Pipeline:
    (only,) = pipelines(planned(sql, catalog), catalog)
    return only


def workload(seed: int) -> list[Pipeline]:
    """All pipelines of a random workload."""
    made = example_workload(seed)
    catalog = made.recording.catalog
    return [p for s in made.queries.values() for p in pipelines(planned(s.sql, catalog), catalog)]


def signatures(sql: str, catalog: Catalog = CATALOG) -> list[str]:
    return [p.signature for p in pipelines(planned(sql, catalog), catalog)]


def load(file: str) -> list[dict[str, str]]:
    return yaml.safe_load((DATA / file).read_text())


def rewritten(case: dict[str, str]) -> dict[str, str]:
    """The plan before and after one rewrite, with those that come before it."""
    plan = build(parse(case["sql"], CATALOG))
    position = NAMES.index(case["rewrite"])
    for rewrite in REWRITES[:position]:
        plan = rewrite(plan, CATALOG)
    after = REWRITES[position](plan, CATALOG)
    return {"before": tree(nodes(plan, CATALOG)), "after": tree(nodes(after, CATALOG))}


def explained(case: dict[str, str]) -> dict[str, Any]:
    plan = planned(case["sql"])
    cut = fragments(plan, CATALOG)
    made = pipelines(plan, CATALOG)
    return {
        "plan": tree(nodes(plan, CATALOG, cut)),
        "fragments": fragment_words(cut),
        "templates": [template_words(template_of(p), CATALOG) for p in made],
        "parameters": [parameter_words(p) for p in made],
    }


ANSWERS = {"rewrites.yaml": rewritten, "plans.yaml": explained}


def _block(dumper: yaml.Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def update() -> None:
    yaml.SafeDumper.add_representer(str, _block)
    for file, answer in ANSWERS.items():
        fresh = [case | answer(case) for case in load(file)]
        (DATA / file).write_text(yaml.safe_dump(fresh, sort_keys=False, allow_unicode=True, width=10_000))


if __name__ == "__main__":
    update()
