"""Every exception of towpath.

TowpathError                what a user may see: one message, no stack trace
├── ProblemsError           several mistakes of the input, all at once
│   ├── QueryError          in a query's SQL
│   ├── JobError            in a job file
│   ├── ProblemFileError    in a problem file or a table beside it
│   ├── PlannerError        in a planner's file, its options, or the placement it answered with
│   └── PolicyError         in a policy's options
├── StoreError              the store is locked, missing, of another job, or damaged
├── StreamError             a stream's data cannot be read
├── SinkError               a query's own sink cannot be written
├── MoveRefused             a fragment cannot be moved as asked
├── AdmissionRefused        no node has room for a query
├── NodeRefused             a node cannot take a query, or cannot be drained
├── ServiceError            no service answers for a job, or it cannot do what is asked now
├── MissingPackageError     a package that an extra of towpath brings is not installed
├── NothingMeasured         what a planner would do is asked of a job that nothing is known of yet
├── UnknownQueryError       a name that no query has
├── UnknownNameError        a name that no planner, policy, experiment or stream has
├── RuntimeFailure          Spark stopped a carrier, or could not be started
└── FragmentFailed          a worker cannot calculate an expression of a query, which is set aside for that
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HINT = "\n    -> "  # between what is wrong and what to do


class TowpathError(Exception):
    """Base of all errors meant for the user."""


@dataclass(frozen=True)
class Mistake:
    """One mistake: where it is, what is wrong, what to do, and (for SQL) the place underlined."""

    where: str
    message: str
    hint: str = ""
    excerpt: str = ""  # the source line and a line of ^^^^ below it

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.message}" if self.where else self.message]
        lines += [f"    {line}" for line in self.excerpt.splitlines()]
        if self.hint:
            lines.append(f"    -> {self.hint}")
        return "\n".join(lines)


class ProblemsError(TowpathError):
    """All mistakes of one input."""

    def __init__(self, title: str, problems: Iterable[Mistake]) -> None:
        self.title = title
        self.problems = tuple(problems)
        super().__init__("\n".join([title, *(str(p) for p in self.problems)]))


class QueryError(ProblemsError):
    pass


class JobError(ProblemsError):
    pass


class ProblemFileError(ProblemsError):
    pass


class PlannerError(ProblemsError):
    pass


class PolicyError(ProblemsError):
    pass


class StoreError(TowpathError):
    pass


class StreamError(TowpathError):
    pass


class SinkError(TowpathError):
    pass


class MoveRefused(TowpathError):
    pass


class AdmissionRefused(TowpathError):
    pass


class NodeRefused(TowpathError):
    pass


class ServiceError(TowpathError):
    pass


class MissingPackageError(TowpathError):
    def __init__(self, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}{HINT}{hint}")


class NothingMeasured(TowpathError):
    pass


class UnknownQueryError(TowpathError):
    pass


class UnknownNameError(TowpathError):
    pass


class RuntimeFailure(TowpathError):
    pass


class FragmentFailed(TowpathError):
    def __init__(self, number: int, reason: Exception) -> None:
        super().__init__(f"fragment {number} fails: {reason}")
        self.number = number
