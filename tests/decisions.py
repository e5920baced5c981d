"""Small decision classes of every kind, and what must hold on each, by enumeration."""

from __future__ import annotations

import math

import numpy as np

from superarm import decision as d


def random_graph(rng, nodes, edges):
    """Return distinct edges of a connected graph on so many nodes (no loops)."""
    found = {(int(rng.integers(v)), v) for v in range(1, nodes)}  # a random tree
    while len(found) < min(edges, nodes * (nodes - 1) // 2):
        u, v = sorted(rng.choice(nodes, 2, replace=False).tolist())
        found.add((u, v))
    return [tuple(edge) for edge in rng.permutation(sorted(found)).tolist()]


def top_k(rng):
    n = int(rng.integers(1, 9))
    return d.TopK(n, int(rng.integers(1, n + 1)))


def partition(rng):
    groups = rng.integers(0, 3, int(rng.integers(2, 9))).tolist()
    capacities = {g: int(rng.integers(0, groups.count(g) + 1)) for g in set(groups)}
    capacities[groups[0]] = max(1, capacities[groups[0]])
    return d.Partition(groups, capacities)


def spanning_trees(rng):
    nodes = int(rng.integers(2, 6))
    edges = random_graph(rng, nodes, int(rng.integers(nodes - 1, 9)))
    if rng.random() < 0.3:
        edges.append(edges[0])  # parallel
    return d.SpanningTrees(edges)


def linear(rng):
    return d.LinearMatroid([*rng.integers(-1, 2, (int(rng.integers(2, 8)), 3)).tolist(), [1, 0, 0]])


def transversal(rng):
    posts = [rng.choice(4, int(rng.integers(0, 4)), replace=False).tolist() for _ in range(7)]
    return d.Transversal([[0], *posts])


def custom(rng):
    graphic = spanning_trees(rng)

    def independent(arms):
        growing = graphic.empty()
        return all(growing.join(arm) for arm in arms)

    return d.CustomMatroid(graphic.n, independent)


def dag(rng):
    nodes = int(rng.integers(2, 7))
    edges = random_graph(rng, nodes, int(rng.integers(nodes - 1, 11)))
    edges += [(v, v + 1) for v in range(nodes - 1) if (v, v + 1) not in edges]
    if rng.random() < 0.3:
        edges.append(edges[0])  # parallel
    return d.Paths(edges, 0, nodes - 1)


def cyclic(rng):
    nodes = int(rng.integers(2, 6))
    edges = random_graph(rng, nodes, int(rng.integers(nodes - 1, 9)))
    if rng.random() < 0.5:
        return d.Paths(edges, 0, nodes - 1, directed=False)
    return d.Paths([*edges, *((v, u) for u, v in edges)], 0, nodes - 1)


def matchings(rng):
    left, right = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    pairs = [(f"l{i}", f"r{j}") for i in range(left) for j in range(right)]
    keep = [pair for pair in pairs if rng.random() < 0.75] or pairs[:1]
    for size in range(min(left, right), 0, -1):
        try:
            return d.Matchings(keep, int(rng.integers(1, size + 1)))
        except ValueError:
            continue
    raise AssertionError("one edge is a matching")


KINDS = {
    "top-k": top_k,
    "partition": partition,
    "spanning trees": spanning_trees,
    "linear": linear,
    "transversal": transversal,
    "custom": custom,
    "dag": dag,
    "cyclic": cyclic,
    "matchings": matchings,
}


def violations(decision, rng):
    """Return every claim that fails on random weights."""
    rows = decision.enumerate()
    sets = {tuple(row[row >= 0].tolist()) for row in rows}
    wrong = []
    if len(sets) != len(rows):
        wrong.append("a set is enumerated twice")
    if decision.log_size < math.log(len(sets)) - 1e-9:
        wrong.append("more sets than log_size says")
    lengths = {len(members) for members in sets}
    if max(lengths) > decision.k or min(lengths) < decision.least_size:
        wrong.append("a set is larger or smaller than said")
    weights = rng.standard_normal(decision.n).round(int(rng.integers(0, 4)))
    if not decision.signed:
        weights = -np.abs(weights)
    values = sorted((float(weights[list(members)].sum()) for members in sets), reverse=True)
    first, second = decision.best_two(weights)
    if tuple(first) not in sets or not np.isclose(weights[first].sum(), values[0]):
        wrong.append("best_two: not the best")
    if not np.isclose(weights[decision.best(weights)].sum(), values[0]):
        wrong.append("best: not the best")
    if (second is None) != (len(sets) == 1):
        wrong.append("best_two: a second best where there is none, or none where there is one")
    if second is not None and (
        tuple(second) not in sets
        or np.array_equal(first, second)
        or not np.isclose(weights[second].sum(), values[1])
    ):
        wrong.append("best_two: not the best but one")
    if not all(decision.contains(members) for members in sets):
        wrong.append("contains: denies a set")
    for _ in range(20):
        trial = tuple(np.flatnonzero(rng.random(decision.n) < rng.random()).tolist())
        if decision.contains(trial) != (trial in sets):
            wrong.append("contains: takes what is none, or denies what is one")
    if tuple(decision.draw(rng)) not in sets:
        wrong.append("draw: not a set")
    near = {tuple(members) for members in decision.exchanges(first)}
    if not near <= sets - {tuple(first)} or (len(sets) > 1 and not near):
        wrong.append("exchanges: not other sets")
    return wrong
