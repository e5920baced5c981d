"""max x'Wx over size-k sets by Gurobi, SCIP and HiGHS: one thread each, and when each set came.

Gurobi and SCIP take the quadratic problem as it is (SCIP's products stand in a constraint, and the
diagonal apart from them: it does best so). HiGHS solves linear ones only: a variable for each
product x_i x_j, tied by sum_j x_i x_j = (k - 1) x_i, besides what each sign needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

import numpy as np
from common import now

Matrix = np.ndarray


@dataclass
class Solved:
    """What a solver had when it ended: its best value, a bound on all sets, when values came."""

    value: float
    bound: float
    proved: bool
    seconds: float
    found: list[tuple[float, float]] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """How far the bound is above the best set, as a share of it."""
        return self.bound / self.value - 1 if self.value > 0 else np.inf

    def reached(self, value: float) -> float | None:
        """Seconds until a set was as good as that, but for a millionth; None: never."""
        enough = value * (1 - 1e-6)
        times = [at for at, best in self.found if best >= enough]
        if not times and self.value >= enough:
            return self.seconds
        return min(times, default=None)


def gurobi(W: Matrix, k: int, limit: float) -> Solved:
    import gurobipy as gp

    n, found = len(W), []
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        model.Params.Threads = 1
        model.Params.MIPGap = 1e-9
        x = model.addMVar(n, vtype=gp.GRB.BINARY)
        model.addConstr(x.sum() == k)
        model.setObjective(x @ W @ x, gp.GRB.MAXIMIZE)

        def note(model: gp.Model, where: int) -> None:
            if now() - started > limit:
                model.terminate()
            if where == gp.GRB.Callback.MIPSOL:
                value = model.cbGet(gp.GRB.Callback.MIPSOL_OBJ)
                found.append((now() - started, value))

        started = now()
        model.optimize(note)
        taken = now() - started
        proved = model.Status == gp.GRB.OPTIMAL
        return Solved(model.ObjVal, model.ObjBound, proved, taken, found)


def scip(W: Matrix, k: int, limit: float) -> Solved:
    import pyscipopt as ps

    n, found = len(W), []

    class Note(ps.Eventhdlr):
        def eventinit(self) -> None:
            self.model.catchEvent(ps.SCIP_EVENTTYPE.BESTSOLFOUND, self)

        def eventexit(self) -> None:
            self.model.dropEvent(ps.SCIP_EVENTTYPE.BESTSOLFOUND, self)

        def eventexec(self, event: object) -> None:
            value = self.model.getSolObjVal(self.model.getBestSol())
            found.append((now() - started, value))

    model = ps.Model()
    model.hideOutput()
    model.setParam("timing/clocktype", 1)  # the processor's
    model.setParam("limits/time", limit)
    model.setParam("limits/gap", 1e-9)
    model.includeEventhdlr(Note(), "note", "when each better set came")
    x = [model.addVar(vtype="B") for _ in range(n)]
    products = model.addVar(lb=None, ub=None)
    model.addCons(ps.quicksum(x) == k)
    pairs = zip(*np.triu_indices(n, 1), strict=True)
    model.addCons(products <= ps.quicksum(2 * float(W[i, j]) * x[i] * x[j] for i, j in pairs))
    single = ps.quicksum(float(W[i, i]) * x[i] for i in range(n))
    model.setObjective(products + single, "maximize")
    started = now()
    model.optimize()
    taken = now() - started
    proved = model.getStatus() in ("optimal", "gaplimit")
    return Solved(model.getPrimalbound(), model.getDualbound(), proved, taken, found)


def highs(W: Matrix, k: int, limit: float) -> Solved:
    import highspy

    found = []
    solver = highspy.Highs()
    solver.silent()
    for option, setting in {"threads": 1, "mip_rel_gap": 1e-9}.items():
        solver.setOptionValue(option, setting)
    solver.passModel(linearised(W, k))

    def note(event: object) -> None:
        found.append((now() - started, event.data_out.objective_function_value))

    def stop(event: object) -> None:
        event.data_in.user_interrupt = now() - started > limit

    solver.cbMipImprovingSolution.subscribe(note)
    solver.cbMipInterrupt.subscribe(stop)
    started = now()
    solver.run()
    taken = now() - started
    info = solver.getInfo()
    proved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Solved(info.objective_function_value, info.mip_dual_bound, proved, taken, found)


def linearised(W: Matrix, k: int) -> object:
    """max sum W_ii x_i + 2 sum W_ij z_ij, z_ij = x_i x_j for binary x."""
    import highspy
    from scipy.sparse import coo_array

    n = len(W)
    i, j = np.triu_indices(n, 1)
    weights, pairs = W[i, j], np.arange(n, n + len(i))
    above, below = weights > 0, weights <= 0
    parts, upper = [], []

    def rows(entries: list[tuple[np.ndarray, float]], most: float) -> None:
        at = sum(len(part) for part in upper) + np.arange(len(entries[0][0]))
        parts.extend((at, columns, np.full(len(at), factor)) for columns, factor in entries)
        upper.append(np.full(len(at), most))

    rows([(pairs[above], 1.0), (i[above], -1.0)], 0.0)
    rows([(pairs[above], 1.0), (j[above], -1.0)], 0.0)
    rows([(i[below], 1.0), (j[below], 1.0), (pairs[below], -1.0)], 1.0)
    inequalities = sum(map(len, upper))
    every = np.arange(n)
    parts.append((inequalities + i, pairs, np.ones(len(i))))  # sum_j z_ij = (k - 1) x_i
    parts.append((inequalities + j, pairs, np.ones(len(i))))
    parts.append((inequalities + every, every, np.full(n, 1.0 - k)))
    parts.append((np.full(n, inequalities + n), every, np.ones(n)))  # sum x = k
    row, column, factor = (np.concatenate([part[c] for part in parts]) for c in range(3))
    total = n + len(i)
    matrix = coo_array((factor, (row, column)), shape=(inequalities + n + 1, total)).tocsc()
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = total, inequalities + n + 1
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = np.concatenate([np.diagonal(W), 2 * weights])
    program.col_lower_, program.col_upper_ = np.zeros(total), np.ones(total)
    equal = np.concatenate([np.zeros(n), [float(k)]])
    program.row_upper_ = np.concatenate([*upper, equal])
    program.row_lower_ = np.concatenate([np.full(inequalities, -highspy.kHighsInf), equal])
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = matrix.indptr
    program.a_matrix_.index_ = matrix.indices
    program.a_matrix_.value_ = matrix.data
    kinds = highspy.HighsVarType
    program.integrality_ = [kinds.kInteger] * n + [kinds.kContinuous] * len(i)
    return program


Solver = Callable[[Matrix, int, float], Solved]
SOLVERS: dict[str, tuple[str, Solver]] = {
    "Gurobi": ("gurobipy", gurobi),
    "SCIP": ("pyscipopt", scip),
    "HiGHS": ("highspy", highs),
}


def missing(package: str) -> str:
    """Why a package cannot be used, in one line; nothing where it can."""
    try:
        import_module(package)
    except ImportError as error:
        return f"{package} is not there ({error}); `make bench` installs it"
    return ""
