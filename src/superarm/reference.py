"""The paper, slowly: as printed, one pull at a time, by enumeration, with dense matrices.

Nothing here is fast and nothing is shared with the rest of the library: every fast path is
compared with this file, and campaigns are replayed with it. Arms are 0..n-1, a super-arm is a
sorted tuple of arms, theta is maximised. In every tie the lower index wins: in the best set, in
peeling (the lowest of the least degrees goes first), in enumeration (lexicographic order).
Where a function takes k, the super-arms of another decision class may be listed in its place;
A_t^-1 is then the inverse on their span (the pseudo-inverse).

W stands for A_t^-1 wherever a stopping rule takes it, and |x|_W = sqrt(x' W x).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
SuperArm: TypeAlias = tuple[int, ...]
Class: TypeAlias = int | Sequence[SuperArm]
Constants: TypeAlias = Literal["paper", "corrected"]
Alpha: TypeAlias = Literal["theorem", "spectral", "certified"] | float


@dataclass(frozen=True)
class Sides:
    """The two sides of a stopping rule: the gap theta^(best) - theta^(rival), and the radius."""

    best: SuperArm
    rival: SuperArm | None
    gap: float
    radius: float
    stop: bool


@dataclass(frozen=True)
class Run:
    """How a run ended: after `pulls` pulls, at look number `look` (the first is 1)."""

    best: SuperArm
    pulls: int
    look: int
    sides: Sides


# ---- Section 2: pulls and least squares ----------------------------------------------------------


def track(proportions: Sequence[float]) -> Iterator[int]:
    """Yield argmin over supp(p) of T_M / p_M without end (the Pull line of Algorithms 2-5)."""
    support = [m for m, p in enumerate(proportions) if p > 0]
    if not support:
        raise ValueError(f"no super-arm has a positive proportion: {list(proportions)}")
    count = dict.fromkeys(support, 0)
    # Never-pulled super-arms come first (0 / p = 0), so the first pass makes A_t invertible if
    # anything can: this is also the first loop of Algorithms 2-5.
    while True:
        pulled = min(support, key=lambda m: (count[m] / proportions[m], m))
        count[pulled] += 1
        yield pulled


def tracking_order(proportions: Sequence[float], t: int) -> list[int]:
    """Return the index pulled at each of the first t rounds."""
    return list(islice(track(proportions), t))


def indicator(n: int, members: Iterable[int]) -> FloatArray:
    """Return chi_M in {0, 1}^n."""
    chi = np.zeros(n)
    for i in members:
        chi[i] = 1.0
    return chi


def design_matrix(n: int, pulled: Sequence[SuperArm]) -> FloatArray:
    """Return A_t = sum of chi_M chi_M' over the pulls."""
    A = np.zeros((n, n))
    for members in pulled:
        chi = indicator(n, members)
        A += np.outer(chi, chi)
    return A


def response(n: int, pulled: Sequence[SuperArm], totals: Sequence[float]) -> FloatArray:
    """Return b_t = sum of chi_M r_M over the pulls, each coordinate rounded once."""
    if len(pulled) != len(totals):
        raise ValueError(f"{len(pulled)} pulls came with {len(totals)} totals")
    seen: list[list[float]] = [[] for _ in range(n)]
    for members, total in zip(pulled, totals, strict=True):
        for i in members:
            seen[i].append(total)
    return np.array([math.fsum(values) for values in seen])


def span(n: int, k: Class) -> FloatArray:
    """Return an orthonormal basis, in columns, of what the super-arms' indicators span."""
    if isinstance(k, int) and k < n:
        return np.eye(n)
    rows = np.vstack([indicator(n, members) for members in sets_of(n, k)])
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(right[singular > 1e-10 * len(rows)].T)


def indistinguishable(n: int, pulled: Iterable[SuperArm], k: Class = 1) -> list[int]:
    """Return the arms whose mean these super-arms leave open though all together determine it.

    They are the arms at which some vector of the span that is orthogonal to the indicators is not
    zero; there are none iff A_t is invertible (on the span). Each super-arm counts once, so that
    unequal numbers of pulls do not blur the rank.
    """
    basis = span(n, k)
    size = basis.shape[1]
    distinct = [indicator(n, members) @ basis for members in sorted(set(pulled))]
    rows = np.vstack([np.zeros((size, size)), *distinct])  # so many rows that no vector is missing
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    null_space = right[singular <= 1e-10 * len(rows)] @ basis.T
    return [i for i in range(n) if np.linalg.norm(null_space[:, i]) > 1e-8]


def least_squares(
    n: int, pulled: Sequence[SuperArm], totals: Sequence[float], k: Class = 1
) -> tuple[FloatArray, FloatArray]:
    """Return theta^_t = A_t^-1 b_t, and A_t^-1 made exactly symmetric."""
    unknown = indistinguishable(n, pulled, k)
    if unknown:
        raise ValueError(
            f"A_t is not invertible after {len(pulled)} pulls: arms {unknown} cannot be told apart;"
            " pull super-arms that separate them"
        )
    basis = span(n, k)
    A = basis.T @ design_matrix(n, pulled) @ basis
    b = basis.T @ response(n, pulled, totals)
    theta = np.asarray(basis @ np.linalg.solve(A, b), dtype=np.float64)
    inverse = basis @ np.linalg.inv(A) @ basis.T
    return theta, (inverse + inverse.T) / 2


# ---- Proposition 1 and Lemma 1: the constants C_t ------------------------------------------------


def log_choose(n: int, k: Class) -> float:
    """Return log K = log C(n, k), the binomial coefficient being exact."""
    return math.log(math.comb(n, k) if isinstance(k, int) else len(k))


def union_log(t: int, log_events: float, delta: float, constants: Constants) -> float:
    """Return log(c t^2 events / delta): c = pi^2 / 6 corrected, c' = 6 / pi^2 as in the paper.

    Corrected, an event of round t fails with probability 6 delta / (pi^2 t^2 events), in sum delta.
    """
    if constants not in ("paper", "corrected"):
        raise ValueError(f"constants is 'paper' or 'corrected', not {constants!r}")
    c = 6 / math.pi**2 if constants == "paper" else math.pi**2 / 6
    return math.log(c) + 2 * math.log(t) + log_events - math.log(delta)


def ellipsoid_constant(
    t: int, sigma: float, n: int, k: Class, delta: float, constants: Constants = "corrected"
) -> float:
    """Return C_t of Proposition 1.

    paper:     2 sqrt(2) sigma sqrt(log((6 / pi^2) t^2 K / delta))
    corrected: sigma sqrt(2 log((pi^2 / 6) t^2 K / delta))

    K one-sided events a round are enough with M* a fixed best super-arm: SAQM needs the lower side
    for every M != M* and the upper side for M* alone; Exhaustive one side of each chi_M - chi_M*.
    """
    log_term = union_log(t, log_choose(n, k), delta, constants)
    return sigma * math.sqrt((8 if constants == "paper" else 2) * log_term)


def independent_constant(
    t: int, sigma: float, n: int, delta: float, constants: Constants = "corrected"
) -> float:
    """Return C_t of Lemma 1.

    paper:     sigma sqrt(2 log((6 / pi^2) t^2 n / delta))
    corrected: sigma sqrt(2 log((pi^2 / 6) t^2 n / delta))

    Lemma 1 is two-sided and would need 2n. ICB needs n one-sided events a round: with M* a fixed
    best super-arm, the arms in M* must not look too bad and the others not too good.
    """
    return sigma * math.sqrt(2 * union_log(t, math.log(n), delta, constants))


# ---- Sets and norms ------------------------------------------------------------------------------


def value(theta: FloatArray, members: Iterable[int]) -> float:
    """Return theta(M) = sum of theta(e) over e in M."""
    return math.fsum(float(theta[i]) for i in members)


def norm(W: FloatArray, x: FloatArray) -> float:
    """Return |x|_W = sqrt(x' W x); zero where rounding left the square negative."""
    return math.sqrt(max(0.0, float(x @ W @ x)))


def sets_of(n: int, k: Class) -> Iterator[SuperArm]:
    """Yield all super-arms."""
    return combinations(range(n), k) if isinstance(k, int) else iter(k)


def best_two(theta: FloatArray, k: Class) -> tuple[SuperArm, SuperArm]:
    """Return the best size-k set, and the best but one: the k-th arm swapped for the next."""
    n = len(theta)
    if not isinstance(k, int):
        first, second = sorted(k, key=lambda members: -value(theta, members))[:2]
        return first, second
    if not 1 <= k < n:
        raise ValueError(f"a best and a best-but-one set need 1 <= k < n, not k = {k}, n = {n}")
    order = sorted(range(n), key=lambda i: (-theta[i], i))
    return tuple(sorted(order[:k])), tuple(sorted([*order[: k - 1], order[k]]))


# ---- Section 3: quadratic maximisation -----------------------------------------------------------


def greedy_peeling(weights: FloatArray, k: int) -> SuperArm:
    """Remove the vertex of least weighted degree until k are left (Asahiro et al.; Appendix E)."""
    left = list(range(len(weights)))
    while len(left) > k:
        # fsum, so that a degree does not depend on how the arms are numbered
        degree = {i: math.fsum(float(weights[i, j]) for j in left if j != i) for i in left}
        left.remove(min(left, key=lambda i: (degree[i], i)))
    return tuple(left)


def quadratic_maximisation(W: FloatArray, k: int) -> tuple[SuperArm, float]:
    """Algorithm 1 with greedy peeling as its oracle: a set, and its value chi' W chi."""
    n = len(W)
    if k == 1:  # one vertex has no edge, so peeling would be blind: the maximum is on the diagonal
        members: SuperArm = (max(range(n), key=lambda i: (W[i, i], -i)),)
    else:
        weights = np.array(  # w~_ij (Algorithm 1, line 3); peeling ignores the diagonal
            [[W[i, j] + (W[i, i] + W[j, j]) for j in range(n)] for i in range(n)]
        )
        members = greedy_peeling(weights, k)
    chi = indicator(n, members)
    return members, float(chi @ W @ chi)


def brute_force_quadratic(W: FloatArray, k: int) -> tuple[SuperArm, float]:
    """Return the maximiser and maximum of QP (equation 2) by enumeration."""
    best: SuperArm = ()
    most = -math.inf
    for members in combinations(range(len(W)), k):
        chi = indicator(len(W), members)
        if chi @ W @ chi > most:
            best, most = members, float(chi @ W @ chi)
    return best, most


def peeling_guarantee(n: int, k: int) -> float:
    """Return alpha_DkS = k (k - 1) / (n (n - 1)), 1 at k = 1.

    The least of m degrees is at most 2/m of the weight, so each removal keeps a share 1 - 2/m.
    """
    return 1.0 if k == 1 else k * (k - 1) / (n * (n - 1))


def spectral_ratio(W: FloatArray) -> float:
    """Return lambda_min / lambda_max of W: any size-k set has this share of QP's optimum."""
    eigenvalues = np.linalg.eigvalsh(W)
    if eigenvalues[0] <= 0:
        raise ValueError(f"W is not positive definite: its least eigenvalue is {eigenvalues[0]}")
    return float(eigenvalues[0] / eigenvalues[-1])


def theorem_ratio(W: FloatArray, k: int) -> float:
    """Return Theorem 1's ratio for QP, alpha_DkS lambda_min / ((k - 1) lambda_max); 1 at k = 1."""
    return 1.0 if k == 1 else peeling_guarantee(len(W), k) / (k - 1) * spectral_ratio(W)


def spectral_bound(W: FloatArray, k: int) -> float:
    """Return an upper bound on max x' W x over size-k sets, for any symmetric W.

    Size-k indicators lie on the sphere 1'x = k, |x|^2 = k: x = (k/n) 1 + y with y orthogonal to 1
    and |y|^2 = r^2 = k (n - k) / n. There x' W x = (k/n)^2 1'W1 + 2 g'y + y' B y, g = (k/n) P W 1,
    B = P W P, and for every mu > lambda_max(B), in the eigenbasis of B,

        2 g'y + y' B y <= mu r^2 + sum_i g_i^2 / (mu - lambda_i),

    with equality at the least over mu (the trust-region problem has no duality gap).
    """
    n = len(W)
    centre = np.full(n, k / n)
    at_centre = float(centre @ W @ centre)
    if k == n:
        return at_centre
    r2 = k * (n - k) / n
    # An orthonormal basis of the complement of 1: complete 1 to a basis of R^n, drop the first.
    complement = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))[0][:, 1:]
    eigenvalues, vectors = np.linalg.eigh(complement.T @ W @ complement)
    g = vectors.T @ (complement.T @ (W @ centre))
    scale = float(np.linalg.norm(W, 2)) or 1.0
    # Any mu above lambda_max is a valid bound, so starting a hair above it costs only the hair. It
    # also settles the hard case (g without a part along the top eigenvector: least at the edge).
    low = float(eigenvalues[-1]) + 1e-12 * scale
    high = max(low, float(eigenvalues[-1]) + float(np.linalg.norm(g)) / math.sqrt(r2))
    for _ in range(200):
        mu = (low + high) / 2
        slope = r2 - float(np.sum((g / (mu - eigenvalues)) ** 2))  # increasing in mu
        low, high = (mu, high) if slope < 0 else (low, mu)
    dual = high * r2 + float(np.sum(g**2 / (high - eigenvalues)))
    return at_centre + dual + 1e-12 * k * scale  # a margin for rounding: |x' W x| <= k |W|


# ---- The stopping rules --------------------------------------------------------------------------


def saqm_sides(
    theta: FloatArray, W: FloatArray, k: Class, epsilon: float, C: float, alpha: Alpha
) -> Sides:
    """Algorithm 2: stop when gap + epsilon >= C (|chi_best|_W + Z), equation (4).

    C enters once (the paper has it in Z_t and again in the condition), and a ratio for QP enters by
    its square root, Z being a norm: Z = |chi_M'|_W / sqrt(ratio), M' by Algorithm 1. `certified`
    takes Z = sqrt(U) with U = spectral_bound; a number is itself the ratio of norms. At k = 1 the
    maximum is exact, and Z = |chi_M'|_W whatever alpha is. For another class than the sets of size
    k (Corollary 1) Z is the greatest norm itself.
    """
    best, rival = best_two(theta, k)
    if not isinstance(k, int):
        Z = max(norm(W, indicator(len(theta), members)) for members in k)
        return _saqm_sides(theta, W, best, rival, epsilon, C, Z)
    found = norm(W, indicator(len(theta), quadratic_maximisation(W, k)[0]))
    if k == 1:
        Z = found
    elif alpha == "theorem":
        Z = found / math.sqrt(theorem_ratio(W, k))
    elif alpha == "spectral":
        Z = found / math.sqrt(spectral_ratio(W))
    elif alpha == "certified":
        Z = math.sqrt(spectral_bound(W, k))
    else:
        Z = found / float(alpha)  # a ValueError for any other word
    return _saqm_sides(theta, W, best, rival, epsilon, C, Z)


def _saqm_sides(
    theta: FloatArray,
    W: FloatArray,
    best: SuperArm,
    rival: SuperArm,
    epsilon: float,
    C: float,
    Z: float,
) -> Sides:
    gap = value(theta, best) - value(theta, rival)
    radius = C * (norm(W, indicator(len(theta), best)) + Z)
    return Sides(best, rival, gap, radius, gap + epsilon >= radius)


def farthest(
    theta: FloatArray, best: SuperArm, among: Iterable[SuperArm], length: Callable[..., float]
) -> tuple[SuperArm | None, float, float]:
    """Return the first M != best of greatest theta^(M) + length(chi_M - chi_best), gap and length.

    When there is none, nothing bounds the rivals: gap 0, radius infinite.
    """
    n = len(theta)
    rival, gap, radius, most = None, 0.0, math.inf, -math.inf
    for members in among:
        this = length(indicator(n, members) - indicator(n, best))
        if members != best and value(theta, members) + this > most:
            most = value(theta, members) + this
            rival, gap, radius = members, value(theta, best) - value(theta, members), this
    return rival, gap, radius


def icb_sides(theta: FloatArray, W: FloatArray, k: Class, epsilon: float, C: float) -> Sides:
    """Algorithm 4: stop when gap + epsilon > C sum_i |chi_M(i) - chi_best(i)| sqrt(W_ii).

    The rival solves P_1 (Appendix A), here by enumeration.
    """

    def length(x: FloatArray) -> float:
        return C * math.fsum(abs(x[i]) * math.sqrt(W[i, i]) for i in range(len(x)))

    best, _ = best_two(theta, k)
    rival, gap, radius = farthest(theta, best, sets_of(len(theta), k), length)
    return Sides(best, rival, gap, radius, gap + epsilon > radius)


def exhaustive_sides(theta: FloatArray, W: FloatArray, k: Class, epsilon: float, C: float) -> Sides:
    """Algorithm 5: stop when gap + epsilon > C |chi_M - chi_best|_W, the rival by enumeration."""
    best, _ = best_two(theta, k)
    every = sets_of(len(theta), k)
    rival, gap, radius = farthest(theta, best, every, lambda x: C * norm(W, x))
    return Sides(best, rival, gap, radius, gap + epsilon > radius)


def first_order_matrix(
    theta: FloatArray, W: FloatArray, best: SuperArm, drawn: SuperArm, C: float
) -> FloatArray:
    """Return B_t = gamma W - Diag(2 gamma W chi_best) + Diag(theta^), as below equation (5).

    gamma = C / (2 |chi_Mi - chi_best|_W), M_i = `drawn`. The first-order bound is that
    chi_M' B_t chi_M + gamma |chi_best|^2_W + C |chi_Mi - chi_best|_W / 2 is at least
    theta^(M) + C |chi_M - chi_best|_W, with equality at M = M_i.
    """
    chi_best = indicator(len(theta), best)
    gamma = C / (2 * norm(W, indicator(len(theta), drawn) - chi_best))
    return gamma * W - np.diag(2 * gamma * (W @ chi_best)) + np.diag(theta)


def sa_foa_sides(
    theta: FloatArray,
    W: FloatArray,
    k: int,
    epsilon: float,
    C: float,
    draws: Sequence[SuperArm],
    threshold: float = 1.0,
) -> Sides:
    """Algorithm 3: stop when threshold * epsilon >= Z' - theta^(best); the paper prints 1/2.

    Z' = max over F of theta^(M) + C |chi_M - chi_best|_W (equation 5), F the sets found from the
    first-order approximations at the `draws` M_i. F is emptied before the loop, not in it, and
    best is kept out; draws equal to best (norm 0) are skipped. When all of F is best itself, the
    paper leaves nothing to compare with: then F is the best-but-one.
    """
    best, second = best_two(theta, k)
    F = {
        quadratic_maximisation(first_order_matrix(theta, W, best, drawn, C), k)[0]
        for drawn in draws
        if set(drawn) != set(best)
    }
    F = F - {best} or {second}
    rival, gap, radius = farthest(theta, best, sorted(F), lambda x: C * norm(W, x))
    return Sides(best, rival, gap, radius, gap + threshold * epsilon >= radius)


# ---- Ours: the certified rule --------------------------------------------------------------------


def shifts(n: int, blocks: Sequence[SuperArm]) -> list[SuperArm]:
    """Return all n shifts (mod n) of the first block, then of the second, and so on."""
    return [tuple(sorted((i + s) % n for i in block)) for block in blocks for s in range(n)]


def shares_of_levels(n: int, k: int, delta: float, levels: int) -> list[float]:
    """Return log(1/alpha_d), d = 1 .. levels: the level's share delta/levels, for each of its sets.

    From a fixed set there are C(k, d) C(n-k, d) sets d swaps away.
    """
    return [
        math.log(math.comb(k, d) * math.comb(n - k, d) * levels) - math.log(delta)
        for d in range(1, levels + 1)
    ]


def mixture_constant(t: float, rho: float, log_event: float) -> float:
    """Return b_t = sqrt(2 (1 + rho/t) log(1/2 + sqrt(1 + t/rho) / (2 alpha))), log(1/alpha) given.

    A sum S of independent sub-Gaussian terms, V the sum of their squared scales so far, makes
    exp(lS - l^2 V/2) a supermartingale for each l > 0, and so their mean over l ~ |N(0, 1/R)|,
    2 sqrt(R/(V + R)) exp(S^2/(2(V + R))) Phi(S/sqrt(V + R)). By Ville's inequality it reaches
    1/alpha with probability <= alpha. Phi(z) >= 1 - exp(-z^2/2)/2; V/R = t/rho; b_t = S/sqrt(V).
    """
    inside = 0.5 + math.sqrt(1 + t / rho) / 2 * math.exp(log_event)
    return math.sqrt(2 * (1 + rho / t) * math.log(inside))


def norm_of_level(A: FloatArray, k: int, d: int) -> float:
    """Return a bound on |chi_M - chi_M'|_{A^-1} for all sets that differ in d swaps.

    The lesser of 2d / lambda, lambda the least eigenvalue of A - cc'/t on the complement of 1 with
    c = A1/k and t = 1'c/k, and of what the diagonal and the extreme entries of A^-1 allow.
    """
    n = len(A)
    c = A.sum(axis=1) / k
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))[0][:, 1:]
    least = np.linalg.eigvalsh(basis.T @ (A - np.outer(c, c) * k / c.sum()) @ basis)[0]
    W = np.linalg.inv(A)
    off = [float(W[i, j]) for i in range(n) for j in range(n) if i != j]
    within = 2 * d * (float(W.diagonal().max()) - min(off))
    return math.sqrt(min(2 * d / float(least), within + 2 * d * (d - 1) * (max(off) - min(off))))


def certified_sides(
    theta: FloatArray, A: FloatArray, k: int, epsilon: float, radii: Sequence[float]
) -> Sides:
    """Stop when gap + epsilon >= radii[d-1] times the norm of level d, for all rivals at any d.

    Levels beyond those of `radii` are left out: with epsilon = 0 the first is enough.
    """
    best, _ = best_two(theta, k)
    most = -math.inf
    for members in combinations(range(len(theta)), k):
        d = len(set(members) - set(best))
        if not 1 <= d <= len(radii):
            continue
        gap = value(theta, best) - value(theta, members)
        radius = radii[d - 1] * norm_of_level(A, k, d)
        if radius - gap > most:
            most, sides = radius - gap, Sides(best, members, gap, radius, gap + epsilon >= radius)
    return sides


def weighted_estimate(
    n: int, blocks: Sequence[SuperArm], counts: Sequence[int], sums: Sequence[float]
) -> tuple[FloatArray, FloatArray]:
    """Return A and A^-1 sum_l w_l X_l' ybar_l with A = sum_l w_l X_l'X_l, w_l the least count of l.

    ybar is the mean total of each super-arm, X_l has the shifts of block l as its rows. With equal
    counts this is least squares; else its covariance is at most sigma^2 A^-1.
    """
    A, b = np.zeros((n, n)), np.zeros(n)
    for place, members in enumerate(shifts(n, blocks)):
        start = place - place % n
        weight = min(counts[start : start + n])
        if weight > 0:
            chi = indicator(n, members)
            A += weight * np.outer(chi, chi)
            b += weight * chi * sums[place] / counts[place]
    return A, np.asarray(np.linalg.solve(A, b), dtype=np.float64)


def certified_run(
    n: int,
    blocks: Sequence[SuperArm],
    looks: Iterable[int],
    totals: Callable[[int], float],
    *,
    sigma: float,
    epsilon: float,
    delta: float,
    rho: float,
) -> Run:
    """Pull all shifts of the blocks in turn; look after these numbers of whole cycles."""
    k = len(blocks[0])
    levels = 1 if epsilon == 0 else min(k, n - k)
    events = shares_of_levels(n, k, delta, levels)
    support = shifts(n, blocks)
    pulled: list[SuperArm] = []
    received: list[float] = []
    for look, cycles in enumerate(looks, start=1):
        while len(pulled) < cycles * len(support):
            received.append(float(totals(len(pulled))))
            pulled.append(support[len(pulled) % len(support)])
        theta, _ = least_squares(n, pulled, received)
        radii = [sigma * mixture_constant(len(pulled), rho, event) for event in events]
        sides = certified_sides(theta, design_matrix(n, pulled), k, epsilon, radii)
        last = Run(sides.best, len(pulled), look, sides)
        if sides.stop:
            break
    return last


# ---- Algorithms 2-5: a whole run -----------------------------------------------------------------


def run(
    rule: Callable[..., Sides],
    supports: Sequence[SuperArm],
    proportions: Sequence[float],
    looks: Iterable[int],
    totals: Callable[[int], float],
    *,
    sigma: float,
    n: int,
    k: Class,
    epsilon: float,
    delta: float,
    constants: Constants = "corrected",
    region: Literal["ellipsoid", "independent"] = "ellipsoid",
    draws: Callable[[int], Sequence[SuperArm]] | None = None,
) -> Run:
    """Pull one at a time in tracking order, look after each count in `looks`, end at a stop.

    `rule(theta^, W, k, epsilon, C_t)` returns the sides: `icb_sides`, `exhaustive_sides`, or
    `functools.partial(saqm_sides, alpha=...)`. For `sa_foa_sides`, `draws(look)` gives the M_i of
    look number `look` and is handed on. `totals(s)` is what came back at position s = 0, 1, ...
    C_t is Proposition 1's or, with region "independent", Lemma 1's; t is the number of pulls.
    Looks that come before A_t is invertible decide nothing. After the last look `sides.stop` is
    False. With k = n there is one answer, and it needs no pull.
    """
    if region not in ("ellipsoid", "independent"):
        raise ValueError(f"region is 'ellipsoid' or 'independent', not {region!r}")
    if len(supports) != len(proportions):
        raise ValueError(f"{len(supports)} super-arms came with {len(proportions)} proportions")
    if k == n:
        whole = tuple(range(n))
        return Run(whole, 0, 0, Sides(whole, None, 0.0, 0.0, True))
    used = [M for M, p in zip(supports, proportions, strict=True) if p > 0]
    unknown = indistinguishable(n, used, k)
    if unknown:
        raise ValueError(f"arms {unknown} cannot be told apart by this support: add super-arms")

    pulled: list[SuperArm] = []
    received: list[float] = []
    order = track(proportions)
    last: Run | None = None
    for look, t in enumerate(looks, start=1):
        if t <= len(pulled):
            raise ValueError(f"looks must increase from 1: {t} comes after {len(pulled)} pulls")
        while len(pulled) < t:
            received.append(float(totals(len(pulled))))
            pulled.append(supports[next(order)])
        if indistinguishable(n, pulled, k):
            continue
        theta, W = least_squares(n, pulled, received, k)
        if region == "ellipsoid":
            C = ellipsoid_constant(t, sigma, n, k, delta, constants)
        else:
            C = independent_constant(t, sigma, n, delta, constants)
        extra = {} if draws is None else {"draws": draws(look)}
        sides = rule(theta, W, k, epsilon, C, **extra)
        last = Run(sides.best, t, look, sides)
        if sides.stop:
            break
    if last is None:
        raise ValueError(f"A_t was invertible at no look: look later than {len(pulled)} pulls")
    return last


def draw_total(
    rng: np.random.Generator, means: Sequence[float], members: SuperArm, noise: tuple[Any, ...]
) -> float:
    """Draw the total of one pull of `members`; its mean is theta(M) under every law.

    ("gaussian", sigma)         theta(M) + N(0, sigma^2)
    ("labels",)                 each arm right (1) with probability theta(e), independently
    ("shared-labels",)          one uniform u for all; arm e is right when u < theta(e)
    ("bounded", R, independent) each arm +R with probability (1 + theta(e) / R) / 2, else -R;
                                independently, or all by one shared uniform
    ("total", lo, hi)           hi with probability (theta(M) - lo) / (hi - lo), else lo
    """
    theta_M = math.fsum(means[e] for e in members)

    def right(u: float, probability: float) -> bool:
        if not -1e-12 <= probability <= 1 + 1e-12:  # a mean on the edge, computed, may miss it
            raise ValueError(f"{noise} with these means asks for a probability of {probability}")
        return u < probability

    match noise:
        case ("gaussian", sigma):
            return float(rng.normal(theta_M, sigma))
        case ("labels",):
            return float(sum(right(rng.random(), means[e]) for e in members))
        case ("shared-labels",):
            u = rng.random()
            return float(sum(right(u, means[e]) for e in members))
        case ("bounded", R, independent):
            us = [rng.random() for _ in members] if independent else [rng.random()] * len(members)
            ups = sum(right(u, (1 + means[e] / R) / 2) for u, e in zip(us, members, strict=True))
            return float(R * (2 * ups - len(members)))
        case ("total", lo, hi):
            return float(hi if right(rng.random(), (theta_M - lo) / (hi - lo)) else lo)
    raise ValueError(f"unknown noise {noise!r}")
