"""Branch and bound for max x'Wx over size-k sets, from one relaxation solved at the root.

At the root x'Wx <= q(x) = x'Mx + l'x + constant for all size-k indicators x, and q is concave on
the plane 1'x = k. Its greatest value over that plane, at y, bounds the whole tree. With some arms
fixed at 0 or 1, the greatest value over the others bounds that part of it. All that is kept of q is
y, q(y) and G, the inverse of -M on differences (vectors that add up to 0). Fixing y_a = v means

    q(y) falls by (v - y_a)^2 / G_aa,   y += G e_a (v - y_a)/G_aa,   G -= G e_a e_a'G / G_aa,

so that the loss is known beforehand for every arm. An arm whose loss is too great one way is fixed
the other way for good; the search branches on the arm whose two losses are both great. M holds
multipliers N >= 0 of x_i x_j >= 0; once arm i is in, -2 N_ij x_j is counted too, which is linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from superarm._jit import njit_fast
from superarm.quadratic.multipliers import Relaxed
from superarm.quadratic.sphere import centred, differences, sphere_maximum

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Members = NDArray[np.int64]

_RIDGE = 0.02  # subtracted from M's diagonal, as a share of W's: a steeper q branches better
_SLICE = 4_000, 2e7  # nodes between two looks at the clock at most, and nodes times n^2


@dataclass(frozen=True)
class Outcome:
    """What a search found: no set is above `bound`; complete when nothing was left out."""

    members: Members
    value: float
    bound: float
    nodes: int
    complete: bool


class _Tree(NamedTuple):
    """What holds for the whole search."""

    W: NDArray[np.float64]
    N: NDArray[np.float64]
    tolerance: float
    first: int  # which branch is taken first: 1 in, 0 out; the stack is no deeper than min(k, n-k)


class _State(NamedTuple):
    """A stack of nodes, a row a level; a level is kept only while its other branch waits."""

    G: NDArray[np.float64]  # on the free arms, as is y
    y: NDArray[np.float64]
    free: NDArray[np.int64]
    members: NDArray[np.int64]
    sizes: NDArray[np.int64]  # how many are free, how many missing, place to branch on or -1
    push: NDArray[np.float64]  # multipliers: above 0 of x >= 0, below 0 of x <= 1
    numbers: NDArray[np.float64]  # x'Wx so far, q(y), bound, bound of the branch that waits
    depth: NDArray[np.int64]
    best: NDArray[np.float64]
    best_members: NDArray[np.int64]


class Search:
    """A search that can be stopped and gone on with.

    Parameters
    ----------
    members, best
        A known set, and what has to be exceeded: its value, or a threshold.
    tolerance
        By how much more than `best` a set may be worth and still be left out.
    """

    def __init__(
        self, W: Matrix, k: int, relaxed: Relaxed, members: Members, best: float, tolerance: float
    ) -> None:
        n = len(W)
        G, y, bound, rounding = _root(W, k, relaxed)
        N = np.maximum(relaxed.quadratic - W, 0.0)
        np.fill_diagonal(N, 0.0)
        first = 1 if 2 * k <= n else 0
        self.tolerance = tolerance + rounding
        self.nodes = 0
        self._tree = _Tree(np.ascontiguousarray(W), N, self.tolerance, first)
        levels = (k if first else n - k) + 1
        self._state = _State(
            G=np.empty((levels, n, n)),
            y=np.empty((levels, n)),
            free=np.empty((levels, n), dtype=np.int64),
            members=np.empty((levels, k), dtype=np.int64),
            sizes=np.full((levels, 3), -1, dtype=np.int64),
            push=np.zeros((levels, n)),
            numbers=np.zeros((levels, 4)),
            depth=np.zeros(1, dtype=np.int64),
            best=np.array([best]),
            best_members=np.array(members, dtype=np.int64),
        )
        s = self._state
        s.G[0], s.y[0], s.free[0] = G, y, np.arange(n)
        s.sizes[0, :2], s.numbers[0] = (n, k), (0.0, bound, bound, bound)

    @property
    def complete(self) -> bool:
        """Whether nothing is left to search."""
        return bool(self._state.depth[0] < 0)

    @property
    def bound(self) -> float:
        """No set is above this."""
        s, depth = self._state, int(self._state.depth[0])
        here = [s.numbers[depth, 2]] if depth >= 0 else []
        waiting = [s.numbers[level, 3] for level in range(depth)]
        return float(max([s.best[0], *here, *waiting])) + self.tolerance

    def run(self, nodes: float, until: float = np.inf) -> Outcome:
        """Search at most so many more nodes, and until the clock (`perf_counter`) says so."""
        most, work = _SLICE
        step = max(1, min(most, int(work / len(self._tree.W) ** 2)))
        end = self.nodes + nodes
        while not self.complete and self.nodes < end and perf_counter() < until:
            self.nodes += _search(self._tree, self._state, int(min(step, end - self.nodes)))
        members = np.sort(self._state.best_members)
        value = float(self._tree.W[np.ix_(members, members)].sum())
        return Outcome(members, value, self.bound, self.nodes, self.complete)


def search_bytes(n: int, k: int) -> float:
    """Memory that a search takes."""
    return 8.0 * n * n * (min(k, n - k) + 1)


def _root(W: Matrix, k: int, relaxed: Relaxed) -> tuple[Matrix, Vector, float, float]:
    """Return G, y and q(y) before anything is fixed, and how far rounding may move a bound.

    On indicators x'Mx = x'(M - mu)x + mu k; mu makes M - mu negative on differences.
    """
    n, M, l = len(W), relaxed.quadratic, relaxed.linear  # noqa: E741 - as in the text above
    towards = M.sum(axis=1) * (k / n) + l / 2
    _, mu = sphere_maximum(centred(M), towards - towards.mean(), k * (n - k) / n)
    mu += _RIDGE * float(np.abs(np.diagonal(W)).mean()) + 1e-12 * float(np.abs(M).max()) + 1e-200
    V = differences(n)
    H = V.T @ (mu * V - M @ V)
    factor = cho_factor((H + H.T) / 2)
    G = V @ cho_solve(factor, V.T)
    y = k / n + V @ cho_solve(factor, V.T @ towards)
    bound = relaxed.constant + float(y @ M @ y + l @ y) + mu * (k - float(y @ y))
    G = (G + G.T) / 2
    norm = float(np.abs(H).sum(axis=0).max())
    condition = norm * float(np.abs(G).sum(axis=0).max())
    rounding = 10 * n * np.finfo(np.float64).eps * condition * norm * (k + float(y @ y))
    return G, y, bound, float(rounding)


@njit_fast
def _search(tree, s, budget):  # type: ignore[no-untyped-def]
    """Go on depth first for at most `budget` nodes; return how many."""
    column = np.empty(tree.W.shape[0])
    nodes = 0
    while s.depth[0] >= 0 and nodes < budget:
        level = s.depth[0]
        place = s.sizes[level, 2]
        if place >= 0:  # back from the first branch: take the other, in its place
            s.sizes[level, 2] = -1
            s.numbers[level, 2] = s.numbers[level, 3]
            if s.numbers[level, 2] <= s.best[0] + tree.tolerance:
                s.depth[0] -= 1
                continue
            _fix(tree, s, place, 1 - tree.first, level, level, column)
        nodes += 1
        place = _process(tree, s, level, column)
        if place < 0:
            s.depth[0] -= 1
            continue
        _fix(tree, s, place, tree.first, level, level + 1, column)
        s.sizes[level, 2] = place
        s.depth[0] += 1
    return nodes


@njit_fast
def _process(tree, s, level, column):  # type: ignore[no-untyped-def]
    """Fix arms while that is certain; return the place of the arm to branch on, -1 when done."""
    while True:
        m, missing = s.sizes[level, 0], s.sizes[level, 1]
        if missing <= 2 or missing == m:
            _finish(tree, s, level)
            return -1
        _press(s, level, m)
        top = s.numbers[level, 1]
        s.numbers[level, 2] = min(s.numbers[level, 2], top)
        limit = s.best[0] + tree.tolerance
        if s.numbers[level, 2] <= limit:
            return -1
        certain = -1
        into = 0
        choice = 0
        score = -1.0
        waits = top
        for a in range(m):
            y, spread = s.y[level, a], s.G[level, a, a]
            if spread <= 0.0:
                continue  # rounding: nothing is known of this arm
            lost_in = (1.0 - y) * (1.0 - y) / spread + max(s.push[level, a], 0.0)
            lost_out = y * y / spread + max(-s.push[level, a], 0.0)
            if top - max(lost_in, lost_out) <= limit:
                certain = a
                into = 0 if top - lost_in <= limit else 1
                break
            if lost_in * lost_out > score:
                score, choice = lost_in * lost_out, a
                waits = top - (lost_out if tree.first == 1 else lost_in)
        s.numbers[level, 3] = min(s.numbers[level, 2], waits)
        if certain < 0:
            return choice
        _fix(tree, s, certain, into, level, level, column)


@njit_fast
def _press(s, level, m):  # type: ignore[no-untyped-def]
    """Lower q(y), an arm at a time: multipliers of x >= 0 and x <= 1 bring y into [0, 1].

    Adding p x_a (p > 0), or p (x_a - 1) (p < 0), to q leaves it a bound. The best p brings y_a to
    the end of the interval; what an earlier turn added may be taken back.
    """
    G, y, push = s.G[level], s.y[level], s.push[level]
    for a in range(m):
        if (push[a] == 0.0 and 0.0 <= y[a] <= 1.0) or G[a, a] <= 0.0:
            continue
        end = 0.0 if push[a] > 0.0 or (push[a] == 0.0 and y[a] < 0.0) else 1.0
        p = 2.0 * (end - y[a]) / G[a, a]
        p = max(p, -push[a]) if end == 0.0 else min(p, -push[a])
        if p == 0.0:
            continue
        push[a] += p
        s.numbers[level, 1] += p * (y[a] - end + 0.25 * p * G[a, a])
        for b in range(m):
            y[b] += 0.5 * p * G[a, b]


@njit_fast
def _fix(tree, s, place, into, source, target, column):  # type: ignore[no-untyped-def]
    """Fix the free arm at a place in (1) or out (0): the node `source` becomes node `target`.

    The last free arm takes its place.
    """
    m, missing = s.sizes[source, 0], s.sizes[source, 1]
    held = s.members.shape[1] - missing
    i = s.free[source, place]
    before, G, y = s.G[source], s.G[target], s.y[target]
    pivot = before[place, place]
    step = (into - s.y[source, place]) / pivot if pivot > 0.0 else 0.0
    inverse = 1.0 / pivot if pivot > 0.0 else 0.0
    for b in range(m):
        column[b] = before[place, b]
    last = m - 1
    for b in range(m):
        factor = column[b] * inverse
        for c in range(m):
            G[b, c] = before[b, c] - factor * column[c]
    if target != source:
        s.y[target, :m] = s.y[source, :m]
        s.free[target, :m] = s.free[source, :m]
        s.push[target, :m] = s.push[source, :m]
        s.members[target, :held] = s.members[source, :held]
        s.numbers[target] = s.numbers[source]
    for b in range(m):
        y[b] += step * column[b]
    pushed = s.push[source, place]  # not needed any more, now that the arm is fixed
    s.numbers[target, 1] -= step * step * pivot + max(pushed if into == 1 else -pushed, 0.0)
    s.free[target, place] = s.free[target, last]
    s.push[target, place] = s.push[target, last]
    y[place] = y[last]
    for b in range(m):
        G[place, b] = G[last, b]
    for b in range(last):
        G[b, place] = G[b, last]
    if into == 1:
        s.numbers[target, 0] += _gain(tree, s, source, i)
        s.members[target, held] = i
        missing -= 1
        _count_products(tree, s, target, last, i, column)
    s.sizes[target, 0] = last
    s.sizes[target, 1] = missing
    s.sizes[target, 2] = -1


@njit_fast
def _count_products(tree, s, level, m, i, column):  # type: ignore[no-untyped-def]
    """Add b'x, b_j = -2 N_ij, to q: q(y) grows by b'y + b'Gb/4, and y moves by Gb/2."""
    G, y = s.G[level], s.y[level]
    some = False
    for b in range(m):
        column[b] = -2.0 * tree.N[i, s.free[level, b]]
        some = some or column[b] != 0.0
    if not some:
        return
    change = 0.0
    for b in range(m):
        moved = 0.0
        for c in range(m):
            moved += G[b, c] * column[c]
        change += column[b] * (y[b] + 0.25 * moved)
        y[b] += 0.5 * moved
    s.numbers[level, 1] += change


@njit_fast
def _gain(tree, s, level, i):  # type: ignore[no-untyped-def]
    """How much arm i adds to x'Wx of the members so far."""
    gain = tree.W[i, i]
    for c in range(s.members.shape[1] - s.sizes[level, 1]):
        gain += 2.0 * tree.W[i, s.members[level, c]]
    return gain


@njit_fast
def _finish(tree, s, level):  # type: ignore[no-untyped-def]
    """Compare what is left outright: none missing, one, two, or all that are free."""
    m, missing = s.sizes[level, 0], s.sizes[level, 1]
    free = s.free[level]
    gain = np.empty(m)
    for a in range(m):
        gain[a] = _gain(tree, s, level, free[a])
    added = np.empty(missing, np.int64)
    most = 0.0
    if missing == m:
        for a in range(m):
            added[a] = free[a]
            most += gain[a]
            for b in range(a):
                most += 2.0 * tree.W[free[a], free[b]]
    elif missing == 1:
        added[0] = free[np.argmax(gain)]
        most = gain.max()
    elif missing == 2:
        most = -np.inf
        for a in range(m):
            for b in range(a):
                both = gain[a] + gain[b] + 2.0 * tree.W[free[a], free[b]]
                if both > most:
                    most, added[0], added[1] = both, free[a], free[b]
    if s.numbers[level, 0] + most > s.best[0]:
        s.best[0] = s.numbers[level, 0] + most
        held = s.members.shape[1] - missing
        s.best_members[:held] = s.members[level, :held]
        s.best_members[held:] = added
