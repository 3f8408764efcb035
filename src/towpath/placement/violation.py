"""One thing that is wrong with a problem or with a placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Resource = Literal["cpu", "memory", "bandwidth in", "bandwidth out", "medium", "link"]
OfPlacement = Literal["missing", "partly placed", "refused", "copies", "pinned", "input", "query plan"]
OfProblem = Literal["name", "number", "connection", "cycle", "empty", "contradiction"]
Unknown = Literal["unknown fragment", "unknown node", "unknown query", "unknown stream", "unknown input"]


@dataclass(frozen=True, slots=True)
class Violation:
    kind: Resource | OfPlacement | OfProblem | Unknown
    where: str
    text: str  # what was found, and what was expected or what the limit was

    @property
    def structural(self) -> bool:
        """It breaks a rule, whatever the nodes and links can take."""
        return self.kind not in get_args(Resource)

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def some(names: Sequence[str], most: int = 5) -> str:
    """A list of names that stays readable."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
