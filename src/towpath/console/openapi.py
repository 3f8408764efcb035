"""The OpenAPI description of the service and the console, made of the types that requests are checked against."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.requests import Request
from starlette.responses import Response

from towpath.api.figures import QueryCost
from towpath.service import health
from towpath.service.messages import (
    Drain,
    HistoryEntry,
    JobStatus,
    LookRequest,
    Migrate,
    MoveStatus,
    NodeStatus,
    QueryStatus,
    Readiness,
    Submit,
    Withdraw,
)

Does = Callable[[Request], Awaitable[Response]]
REFERENCE = "#/components/schemas/{model}"
ERROR = {
    "type": "object",
    "required": ["error", "message"],
    "properties": {
        "error": {"type": "string"},
        "message": {"type": "string"},
        "title": {"type": "string"},
        "problems": {"type": "array", "items": {"type": "object"}},
    },
}


@dataclasses.dataclass(frozen=True)
class Endpoint:
    method: str
    path: str
    does: Does | None  # None: the service itself answers
    summary: str
    body: Any = None  # the type of what is asked
    answer: Any = None
    query: Any = None  # a dataclass: its fields are the parameters
    code: int = 200


@dataclasses.dataclass(frozen=True)
class MovesRequest:
    number: list[int] = dataclasses.field(default_factory=list)


SERVICE = (
    Endpoint("GET", "/status", None, "Nodes, carriers, figures, moves under way", answer=JobStatus),
    Endpoint("GET", "/queries", None, "The queries that run", answer=list[QueryStatus]),
    Endpoint("POST", "/queries", None, "Submit queries, all or none", Submit, list[QueryStatus]),
    Endpoint("GET", "/costs", None, "What each query costs, the dearest first", answer=list[QueryCost]),
    Endpoint("POST", "/withdraw", None, "Withdraw queries, all or none", Withdraw, list[str]),
    Endpoint("GET", "/moves", None, "Some moves", answer=list[MoveStatus], query=MovesRequest),
    Endpoint("POST", "/moves", None, "Begin to move a query or a fragment", Migrate, list[MoveStatus]),
    Endpoint("POST", "/drain", None, "Drain a node, or take that back", Drain, NodeStatus),
    Endpoint("GET", "/history", None, "What happened, and why", answer=list[HistoryEntry], query=LookRequest),
    Endpoint("GET", "/metrics", None, "The job as metrics, in Prometheus's text format"),
    Endpoint("GET", "/healthz", None, "Whether the process answers; without a token"),
    Endpoint("GET", "/readyz", None, "Whether the job works; without a token", answer=Readiness),
)


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    schemas: dict[str, Any] = {"Error": ERROR}
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "towpath",
            "version": version("towpath"),
            "description": "Commands for a running job, and what its console asks for.",
        },
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "towpath-JOB"},
            },
        },
    }


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    failed = {"description": "Why not, in words", "content": _json({"$ref": REFERENCE.format(model="Error")})}
    answered: dict[str, Any] = {"description": endpoint.summary}
    if endpoint.answer is not None:
        answered["content"] = _json(_schema(endpoint.answer, schemas, "serialization"))
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{endpoint.path.replace('/', '_').replace('.', '_')}",
        "responses": {str(endpoint.code): answered, "default": failed},
    }
    if endpoint.body is not None:
        found["requestBody"] = {"required": True, "content": _json(_schema(endpoint.body, schemas, "validation"))}
    if endpoint.query is not None:
        found["parameters"] = _parameters(endpoint.query, schemas)
    if endpoint.path in ("/console/session", *health.PATHS):
        found["security"] = []
    return found


def _parameters(kind: Any, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    whole = TypeAdapter(kind).json_schema(ref_template=REFERENCE)
    schemas |= whole.pop("$defs", {})
    required = whole.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in whole["properties"].items()
    ]


def _schema(kind: Any, schemas: dict[str, Any], mode: JsonSchemaMode) -> dict[str, Any]:
    """A type in JSON Schema; those that have a name are put among the schemas, once."""
    found = TypeAdapter(kind).json_schema(ref_template=REFERENCE, mode=mode)
    schemas |= found.pop("$defs", {})
    if (name := found.get("title")) is None or "properties" not in found:
        return found
    schemas[name] = found
    return {"$ref": REFERENCE.format(model=name)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
