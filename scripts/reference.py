"""Writes what is made of the settings: docs/job.schema.json for editors, and docs/job-file-reference.md for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from towpath.api.job_schema import schema

DOCS = Path(__file__).parents[1] / "docs"
SCHEMA, PAGE = DOCS / "job.schema.json", DOCS / "job-file-reference.md"

HEAD = """\
# Reference of the job file

Every key, what it takes and what it is without being written. [The job file](job-file.md) says what each means. This
page and [job.schema.json](job.schema.json) are made of the settings that towpath checks a job file against
(`make reference`).

## In an editor

Editors that know JSON Schema complete the keys of a job file and underline what is wrong while one types. For those
with the YAML language server (VS Code, Neovim, Emacs, Helix) a first line in the file is enough;
`towpath docs --folder` prints the folder:

    # yaml-language-server: $schema=FOLDER/docs/job.schema.json

The schema knows keys, types and choices. What depends on other keys, on files and on SQL `towpath check` knows.
"""

# Heading, the section's definition, and the choice of `type` that it is, if there are several.
SECTIONS = [
    ("The file", None),
    ("streams: NAME", "StreamText"),
    ("source: files", "FilesSource"),
    ("source: kafka", "KafkaSource"),
    ("source: auction", "AuctionSource"),
    ("source: traffic", "TrafficSource"),
    ("source: rate", "RateSource"),
    ("tables: NAME", "TableText"),
    ("tables: NAME: source", "FileTable"),
    ("nodes: embedded", "EmbeddedNode"),
    ("nodes: connect", "ConnectNode"),
    ("queries: NAME", "QueryDef"),
    ("sink: parquet", "ParquetSinkDef"),
    ("sink: kafka", "KafkaSinkDef"),
    ("sink: webhook", "WebhookSinkDef"),
    ("sink: webhook: dedup", "DedupDef"),
    ("sink: console", "ConsoleSinkDef"),
    ("sink: memory", "MemorySinkDef"),
    ("views: NAME", "ViewDef"),
    ("results", "ResultsDef"),
    ("network", "NetworkDef"),
    ("control", "ControlDef"),
    ("control: limits", "LimitsDef"),
    ("control: admission", "AdmissionDef"),
    ("control: scaling", "ScalingDef"),
]
CHOICES = {"CarrierKinds"}  # definitions that are no section


def page(made: dict[str, Any]) -> str:
    sections = {name for _, name in SECTIONS if name} | CHOICES
    assert made["$defs"].keys() == sections, f"scripts/reference.py: SECTIONS and {made['$defs'].keys() ^ sections}"
    return HEAD + "".join(f"\n## {title}\n\n{_table(made, name)}" for title, name in SECTIONS)


def _table(made: dict[str, Any], name: str | None) -> str:
    section = made if name is None else made["$defs"][name]
    lines = ["| key | takes | default | for example |", "|---|---|---|---|"]
    for key, value in section["properties"].items():
        default = "required" if key in section.get("required", ()) else _code(value.get("default"))
        examples = ", ".join(_code(example) for example in value.get("examples", ()))
        lines.append(f"| `{key}` | {' or '.join(_takes(made, value))} | {default} | {examples} |")
    return "\n".join(lines) + "\n"


def _takes(made: dict[str, Any], value: dict[str, Any]) -> Iterator[str]:
    for choice in value.get("anyOf") or value.get("oneOf") or [value]:
        yield from _one(made, choice)


def _one(made: dict[str, Any], value: dict[str, Any]) -> Iterator[str]:
    kind = value.get("type")
    if "$ref" in value:
        name = value["$ref"].rsplit("/", 1)[1]
        target = made["$defs"][name]
        title = next((title for title, section in SECTIONS if section == name), None)
        words = dict.fromkeys(word.lower() for word in target.get("enum", ()))
        yield f"[{title}](#{_anchor(title)})" if title else ", ".join(map(_code, words))
    elif "anyOf" in value or "oneOf" in value:
        yield from _takes(made, value)
    elif "enum" in value:
        yield ", ".join(map(_code, dict.fromkeys(word.lower() for word in value["enum"])))
    elif str(value.get("pattern")).startswith("^(decimal"):
        yield _code("decimal(p,s)")
    elif "const" in value:
        yield _code(value["const"])
    elif kind == ["string", "number"]:
        yield "a duration"
    elif kind == "array":
        yield "a list"
    elif kind == "object" and isinstance(inner := value.get("additionalProperties"), dict):
        yield f"by name: {' or '.join(dict.fromkeys(_takes(made, inner)))}"
    elif kind != "null":
        yield {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}.get(
            str(kind), "keys with values"
        ) + _bounds(value)


def _bounds(value: dict[str, Any]) -> str:
    if value.get("pattern") == r"\{n\}":
        return " with {n}"
    low, high, above = value.get("minimum"), value.get("maximum"), value.get("exclusiveMinimum")
    if low is not None and high is not None:
        return f" from {low:,} to {high:,}"
    if above is not None:
        return f" above {above:,}"
    return f" of at least {low:,}" if low is not None else ""


def _code(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"`{text}`".replace("|", "\\|") if text else '`""`'


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower() if c.isalnum() or c in "_- ").replace(" ", "-")


def contents() -> dict[Path, str]:
    made = schema()
    return {SCHEMA: json.dumps(made, indent=2) + "\n", PAGE: page(made)}


if __name__ == "__main__":
    for path, text in contents().items():
        path.write_text(text)
        print(path, file=sys.stderr)
