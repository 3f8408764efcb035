"""Planners: one file each in this folder, or in a folder named by the user. docs/how_to_add_a_planner.md

A file `x.py` is the planner x. The first line of its docstring is its help; it has `Options`, a frozen dataclass of its
settings, and `plan(problem, options)`. Two constants are optional: OBJECTIVE, the metric of
towpath.placement.costs that it makes best, and RESPECTS, to which "resources" belongs if it never fills a node or a
link beyond what it has.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from towpath import errors, extras
from towpath.config.settings import meant, options_from
from towpath.errors import MissingPackageError, PlannerError, UnknownNameError
from towpath.placement.check import check
from towpath.placement.problem import Placement, Problem

FOLDERS_VARIABLE = "TOWPATH_PLANNERS"


@dataclasses.dataclass(frozen=True)
class Planner:
    name: str
    help: str
    options: type
    plan: Callable[[Problem, Any], Placement]
    objective: str | None
    respects_resources: bool


def use(folder: Path) -> None:
    """Finds planners in `folder` too, besides those that towpath brings."""
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        mistake = errors.Mistake(str(folder), f"expected a folder of planners, found {found}", "check the path")
        raise PlannerError("planners cannot be found", [mistake])
    path = str(folder.resolve())
    if path in __path__:
        return
    taken = sorted(set(_names([path])) & set(_names(__path__)))
    if taken:
        mistakes = [errors.Mistake(f"{path}/{name}.py", "a planner of that name exists", "rename it") for name in taken]
        raise PlannerError("planners cannot be distinguished", mistakes)
    __path__.append(path)


def available() -> tuple[str, ...]:
    """The names of all planners, those in the folders that the environment names included."""
    # Read here and not on import, so that a wrong folder is reported as an error of the command that asks for planners.
    for folder in filter(None, os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)):
        use(Path(folder))
    return tuple(_names(__path__))


def listed() -> str:
    """The names of all planners in a line; behind one whose packages are missing, how to get them."""
    absent = lacking()
    return ", ".join(f"{name} ({absent[name].hint})" if name in absent else name for name in available())


def lacking() -> dict[str, MissingPackageError]:
    """The planners that need packages which are not installed."""
    found: dict[str, MissingPackageError] = {}
    if not extras.missing("lab"):  # then there is no need to import them all
        return found
    for name in available():
        try:
            importlib.import_module(f"{__name__}.{name}")
        except Exception as error:  # whatever else a user's file raises is reported by `get`
            if lack := _lack(name, error):
                found[name] = lack
    return found


def _lack(name: str, error: Exception) -> MissingPackageError | None:
    return extras.explained(error, f"the planner {name}")


def _names(folders: Iterable[str]) -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(folders) if not module.name.startswith("_"))


def get(name: str) -> Planner:
    if name not in available():
        raise UnknownNameError(f"{name} is not a known planner; {meant(name, available())}")
    try:
        module = importlib.import_module(f"{__name__}.{name}")
    except Exception as error:  # the file is the user's: whatever it raises is reported
        if lack := _lack(name, error):
            raise lack from error
        mistake = errors.Mistake(name, f"cannot be loaded: {type(error).__name__}: {error}", "correct its file")
        raise PlannerError(f"planner {name}", [mistake]) from error
    _require(name, module)
    return Planner(
        name=name,
        help=(inspect.getdoc(module) or "").partition("\n")[0],
        options=module.Options,
        plan=module.plan,
        objective=getattr(module, "OBJECTIVE", None),
        respects_resources="resources" in getattr(module, "RESPECTS", {"structure"}),
    )


def _require(name: str, module: ModuleType) -> None:
    mistakes = []
    if not callable(getattr(module, "plan", None)):
        mistakes.append(errors.Mistake(f"{module.__file__}", "has no plan(problem, options)"))
    if not dataclasses.is_dataclass(getattr(module, "Options", None)):
        mistakes.append(errors.Mistake(f"{module.__file__}", "has no dataclass Options", "it may be an empty one"))
    if mistakes:
        raise PlannerError(f"{name} is not a planner: see `towpath docs how_to_add_a_planner`", mistakes)


def options(name: str, texts: Mapping[str, Any]) -> Any:
    """The options of a planner from `key=value` texts. Raises PlannerError with everything wrong in them."""
    found, mistakes = options_from(get(name).options, texts)
    if mistakes:
        raise PlannerError(f"options of the planner {name}", mistakes)
    return found


def run(name: str, problem: Problem, options: Any = None) -> Placement:
    """What the planner answers, after `check`. Raises PlannerError with all faults if the answer breaks a rule.

    A node or link that is filled beyond what it has is a fault only of a planner that says it respects resources; of
    the others, ask `check`.
    """
    planner = get(name)
    placement = planner.plan(problem, planner.options() if options is None else options)
    faults = [v for v in check(problem, placement) if v.structural or planner.respects_resources]
    if faults:
        title = f"the planner {name} answered with an invalid placement"
        raise PlannerError(title, [errors.Mistake(fault.where, fault.text) for fault in faults])
    return placement
