"""Policies: who decides while data flows, and how. One file or package each in this folder.

The first line of a policy's docstring is its help; it has `Options`, a frozen dataclass of its settings, and
`actors(problem, placement, options)`, which answers with the actors of runtime/actors.py. LIVE is optional: other
defaults of its options for a job that runs on Spark, where a move takes seconds and a measurement many micro-batches.
So is `reported(actors)`: after a run, the values that were reported to its actors, a row for each value.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from towpath import extras
from towpath.config.settings import meant, options_from
from towpath.errors import PolicyError, UnknownNameError
from towpath.placement.problem import Placement, Problem
from towpath.runtime.actors import Actors


@dataclass(frozen=True)
class Policy:
    name: str
    help: str
    options: type
    actors: Callable[[Problem, Placement, Any], Actors]
    live: Mapping[str, Any]
    reported: Callable[[Actors], Sequence[Mapping[str, object]]]


def available() -> tuple[str, ...]:
    """The names of all policies."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")))


def get(name: str) -> Policy:
    if name not in available():
        raise UnknownNameError(f"no policy {name!r}; {meant(name, available())}")
    try:
        module = importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise extras.explained(error, f"the policy {name}") or error from error
    text = (inspect.getdoc(module) or "").partition("\n")[0]
    reported = getattr(module, "reported", lambda actors: ())
    return Policy(name, text, module.Options, module.actors, getattr(module, "LIVE", {}), reported)


def options(name: str, texts: Mapping[str, Any]) -> Any:
    """The options of a policy from `key=value` texts. Raises PolicyError with everything wrong in them."""
    found, mistakes = options_from(get(name).options, texts)
    if mistakes:
        raise PolicyError(f"options of the policy {name}", mistakes)
    return found


def start(name: str, problem: Problem, placement: Placement, options: Any = None) -> Actors:
    policy = get(name)
    return policy.actors(problem, placement, policy.options() if options is None else options)
