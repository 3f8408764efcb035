"""The decision maker (Algorithm 5), and the query plan manager that says whether a distribution may be used."""

from __future__ import annotations

import pkgutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from towpath.config.settings import meant
from towpath.errors import Mistake, PolicyError
from towpath.policies.dcape import costs, redistribution
from towpath.policies.dcape.known import CostTable, Known, ProcessorLimits, Suggestion
from towpath.policies.dcape.options import Options

Row = tuple[str, str]  # a fragment and its processor: a line of the distribution table
Suggest = Callable[[CostTable, Mapping[str, float], Known, ProcessorLimits], Iterator[Suggestion]]


@dataclass(frozen=True)
class Decided:
    moves: tuple[Suggestion, ...] = ()
    refused: tuple[str, ...] = ()


class DecisionMaker:
    """Any cost model with any redistribution policy."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.model: costs.CostModel = _named(costs, "cost", options.cost)
        self._suggest: Suggest = _named(redistribution, "redistribution", options.redistribution).suggest

    def cost(self, known: Known) -> CostTable:
        return costs.cost(self.model, known)

    def decide(self, known: Known, before: Mapping[str, float], held: frozenset[str]) -> Decided:
        table = self.cost(known)
        difference = table.difference()
        if difference <= self._options.percent_difference:
            return Decided()
        limits = ProcessorLimits(self._options, held)
        moves: list[Suggestion] = []
        refused: list[str] = []
        for suggestion in self._suggest(table, before, known, limits):
            wrong = faults(_rows(known.table, [*moves, suggestion]), known.table, known.alive)
            if wrong:
                refused.append(f"{suggestion.fragment} stays on {suggestion.source}: {'; '.join(wrong)}")
            else:
                moves.append(suggestion)
            if len(moves) >= self._options.at_once:
                break
        return Decided(tuple(moves), tuple(refused))


def _rows(table: Mapping[str, str], moves: list[Suggestion]) -> list[Row]:
    """The distribution table after some moves; one that is moved twice stands there twice."""
    kept = [(fragment, at) for fragment, at in table.items() if all(m.fragment != fragment for m in moves)]
    return kept + [(move.fragment, move.target) for move in moves]


def faults(rows: Sequence[Row], fragments: Iterable[str], alive: Collection[str]) -> list[str]:
    """Every fragment must be there exactly once, on a processor that is alive; all that is wrong, in words."""
    count = Counter(fragment for fragment, _ in rows)
    wanted = dict.fromkeys(fragments)
    found = [f"{fragment} is nowhere" for fragment in wanted if not count[fragment]]
    found += [f"{fragment} is there {n} times" for fragment, n in count.items() if n > 1]
    found += [f"{fragment} is not in any plan" for fragment in count if fragment not in wanted]
    found += [f"{processor} of {fragment} is not alive" for fragment, processor in rows if processor not in alive]
    return found


def _named(folder: ModuleType, option: str, name: str) -> Any:
    known = [module.name for module in pkgutil.iter_modules(folder.__path__)]
    if name not in known:
        raise PolicyError("options of the policy dcape", [Mistake(option, f"{name!r} is unknown", meant(name, known))])
    return import_module(f"{folder.__name__}.{name}")
