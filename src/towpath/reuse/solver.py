"""A mixed-integer program in rows, and HiGHS, which solves it. What the solver says is never swallowed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import highspy
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from towpath.errors import Mistake, PlannerError
from towpath.placement.index import Floats, Ints

# optimal: proven, within `gap`. feasible: the time was up with an answer, `gap` away from the best possible.
# infeasible: proven. out of time: it was up without an answer, so nothing is known.
SolverStatus = Literal["optimal", "feasible", "infeasible", "out of time"]
VariableShape = tuple[int, ...]
TOLERANCE = 1e-9  # of rows and of whole numbers: sums of many must stay within what check() forgives


@dataclass(frozen=True)
class Solution:
    status: SolverStatus
    seconds: float  # of the processor
    values: Floats | None = None  # of the columns
    objective: float = inf
    gap: float = inf  # (objective - bound) / |objective|
    bound: float = -inf  # no solution is below it


class IntegerProgram:
    """Minimise the columns' costs, subject to rows. Both are added in blocks, as arrays."""

    def __init__(self) -> None:
        self._columns: list[tuple[Floats, Floats, Floats, bool]] = []  # cost, lower, upper, whole numbers only
        self._width = 0
        self._entries: list[tuple[Ints, Ints, Floats]] = []  # row, column, factor
        self._limits: list[tuple[Floats, Floats]] = []
        self._height = 0

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._height, self._width

    def columns(
        self,
        cost: ArrayLike,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = 1.0,
        whole: bool = True,
        shape: VariableShape = (),
    ) -> Ints:
        """One for each cost, or as many as `shape` says; what is given is spread over them. Returns their numbers."""
        shape = shape or np.shape(cost)
        spread = [np.broadcast_to(np.asarray(values, np.float64), shape).ravel() for values in (cost, lower, upper)]
        self._columns.append((spread[0], spread[1], spread[2], whole))
        first, self._width = self._width, self._width + len(spread[0])
        return np.arange(first, self._width).reshape(shape)

    def rows(
        self, terms: Sequence[tuple[Ints, ArrayLike]], least: ArrayLike = -inf, most: ArrayLike = inf, count: int = 0
    ) -> None:
        """`count` rows, each the sum of columns times factors; by default as many as the first term has columns."""
        count = count or len(terms[0][0])
        numbers = np.arange(self._height, self._height + count)
        for columns, factors in terms:
            self._entries.append((numbers, np.broadcast_to(columns, count), _spread(factors, count)))
        self._limits.append((_spread(least, count), _spread(most, count)))
        self._height += count

    def row(self, terms: Sequence[tuple[Ints, ArrayLike]], least: float = -inf, most: float = inf) -> None:
        """One row: the sum of all columns times their factors."""
        for columns, factors in terms:
            flat = np.ravel(columns)
            spread = np.broadcast_to(np.asarray(factors, np.float64), np.shape(columns)).ravel()
            self._entries.append((np.full(len(flat), self._height), flat, spread))
        self._limits.append((np.array([least]), np.array([most])))
        self._height += 1

    def solve(
        self, seconds: float = 0.0, gap: float = 1e-4, start: Floats | None = None, branches: int = 0
    ) -> Solution:
        """`start`: a solution to begin with. `seconds` and `branches` of the tree to search at most, 0 for all.

        They are seconds of the processor: on a busy machine the same search takes longer, and finds the same. With
        branches alone the answer is the same on every machine.
        """
        begin = time.thread_time()
        solver = self._solver()
        solver.setOptionValue("mip_rel_gap", gap)
        if branches:
            solver.setOptionValue("mip_max_nodes", branches)
        if seconds:
            until = begin + seconds
            solver.cbMipInterrupt += lambda event: event.interrupt(time.thread_time() > until)
            solver.cbSimplexInterrupt += lambda event: event.interrupt(time.thread_time() > until)
        if start is not None:
            given = highspy.HighsSolution()
            given.col_value = start.tolist()
            solver.setSolution(given)
        solver.run()
        return _solution(solver, time.thread_time() - begin)

    def _solver(self) -> highspy.Highs:
        rows, columns, factors = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        matrix = csr_matrix((factors, (rows, columns)), self.size)
        cost, lower, upper = (np.concatenate([block[n] for block in self._columns]) for n in range(3))
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = self.size
        model.col_cost_, model.col_lower_, model.col_upper_ = cost, lower, upper
        model.row_lower_, model.row_upper_ = (np.concatenate([block[n] for block in self._limits]) for n in range(2))
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
        model.a_matrix_.value_ = matrix.data
        kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        model.integrality_ = [kinds[whole] for block, _, _, whole in self._columns for _ in block]
        solver = highspy.Highs()
        for option in ("primal_feasibility_tolerance", "mip_feasibility_tolerance"):
            solver.setOptionValue(option, TOLERANCE)
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)  # the same answer in every run
        solver.passModel(model)
        return solver


def _spread(values: ArrayLike, count: int) -> Floats:
    return np.broadcast_to(np.asarray(values, np.float64), count)


def _solution(solver: highspy.Highs, seconds: float) -> Solution:
    status, info = solver.getModelStatus(), solver.getInfo()
    known = highspy.HighsModelStatus
    if status == known.kInfeasible:
        return Solution("infeasible", seconds)
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    ended_early = status in (known.kInterrupt, known.kSolutionLimit)
    if ended_early and not found:
        return Solution("out of time", seconds, bound=info.mip_dual_bound)
    if not ended_early and status != known.kOptimal:
        mistake = Mistake("solver", f"HiGHS says {solver.modelStatusToString(status)}", "report this as a bug")
        raise PlannerError("the mixed-integer program cannot be solved", [mistake])
    return Solution(
        status="optimal" if status == known.kOptimal else "feasible",
        seconds=seconds,
        values=np.array(solver.getSolution().col_value),
        objective=info.objective_function_value,
        gap=info.mip_gap,
        bound=info.mip_dual_bound,
    )
