"""More of the reference: the looks of campaigns, with sorts in the place of enumeration.

As plain as `reference`, and compared with it where both can go; here n may be some hundreds and
pulls a million, since pulls are kept by super-arm and the best rivals are found swap by swap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.integrate import simpson
from scipy.stats import chi2

from superarm.reference import FloatArray, Sides, SuperArm, indicator, mixture_constant, value

Groups = Mapping[SuperArm, Sequence[float]]
"""All totals of each super-arm."""


# ---- Estimates -----------------------------------------------------------------------------------


def information(n: int, weights: Mapping[SuperArm, float]) -> FloatArray:
    """Return A = sum of w_M chi_M chi_M'."""
    A = np.zeros((n, n))
    for members, weight in weights.items():
        A[np.ix_(members, members)] += weight
    return A


def estimate(n: int, groups: Groups) -> tuple[FloatArray, FloatArray]:
    """Return A = sum of T_M chi_M chi_M' and theta^ = A^-1 sum of S_M chi_M, of least squares."""
    A = information(n, {members: len(totals) for members, totals in groups.items()})
    b = np.zeros(n)
    for members, totals in groups.items():
        b += math.fsum(totals) * indicator(n, members)
    return A, np.asarray(np.linalg.solve(A, b))


def estimate_by_blocks(
    n: int, blocks: Sequence[Sequence[tuple[SuperArm, Sequence[float]]]]
) -> tuple[FloatArray, FloatArray]:
    """Return the same where the shifts of a block, with their totals, have unequal numbers of them.

    A = sum_l w_l X_l'X_l and theta^ = A^-1 sum_l w_l X_l' ybar_l, w_l the least count in block l
    and ybar the means: its covariance is at most sigma^2 A^-1. A set may be there twice.
    """
    weights: dict[SuperArm, float] = {}
    b = np.zeros(n)
    for block in blocks:
        least = min(len(totals) for _, totals in block)
        for members, totals in block:
            weights[members] = weights.get(members, 0) + least
            if least:
                b += least * math.fsum(totals) / len(totals) * indicator(n, members)
    A = information(n, weights)
    return A, np.asarray(np.linalg.solve(A, b))


# ---- Radii ---------------------------------------------------------------------------------------


def norms_of_levels(A: FloatArray, levels: int) -> list[float]:
    """Return for d = 1 .. levels a bound on |chi_M - chi_M'|_{A^-1} of sets that differ by d swaps.

    As `reference.norm_of_level`, with the eigenvalue found once; k drops out of cc'/t.
    """
    n = len(A)
    c = A.sum(axis=1)
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))[0][:, 1:]
    least = float(np.linalg.eigvalsh(basis.T @ (A - np.outer(c, c) / c.sum()) @ basis)[0])
    W = np.linalg.inv(A)
    off = W[~np.eye(n, dtype=bool)]
    most, low, high = float(W.diagonal().max()), float(off.min()), float(off.max())
    return [
        math.sqrt(min(2 * d / least, 2 * d * (most - low) + 2 * d * (d - 1) * (high - low)))
        for d in range(1, levels + 1)
    ]


def level_constant(
    t: int, look: int, log_event: float, rho: float | None, looks: int | None
) -> float:
    """Return b_d: by the mixture at whole cycles (rho), or by a share of delta for each look.

    Of J planned looks each may fail with alpha/J; of any number of them look j with
    6 alpha/(pi^2 j^2).
    """
    if rho is not None:
        return mixture_constant(t, rho, log_event)
    share = looks if looks is not None else math.pi**2 / 6 * look**2
    return math.sqrt(2 * (log_event + math.log(share)))


def planned_constant(sigma: float, log_events: float, looks: int, delta: float) -> float:
    """Return C = sigma sqrt(2 log(J N / delta)): N events at each of J planned looks."""
    return sigma * math.sqrt(2 * (math.log(looks) + log_events - math.log(delta)))


def squares_of_residuals(
    theta: FloatArray, pairs: Sequence[tuple[SuperArm, Sequence[float]]]
) -> float:
    """Return the sum of (y - theta^(M))^2 over all totals y of all super-arms M."""
    return math.fsum(
        (total - value(theta, members)) ** 2 for members, totals in pairs for total in totals
    )


def sigma_bound(squares: float, freedom: int, delta: float, looks: int | None) -> float:
    """Return the bound sqrt(RSS / q) on an unknown sigma.

    At J planned looks q is the delta/J quantile of chi-square(nu); at all looks together the S at
    which the integral of (1 + u)^(nu/2) exp(-u S/2 - u) over u > 0 is 1/delta: under the truth that
    is a martingale of mean 1, and falls as S grows.
    """
    if looks is not None:
        return math.sqrt(squares / float(chi2.ppf(delta / looks, freedom)))
    low, high = 0.0, float(freedom)
    if log_mixture(low, freedom) <= -math.log(delta):
        return math.inf
    for _ in range(60):
        S = (low + high) / 2
        low, high = (S, high) if log_mixture(S, freedom) > -math.log(delta) else (low, S)
    return math.sqrt(squares / low)


def log_mixture(S: float, freedom: int) -> float:
    """Return the log of that integral, by Simpson's rule where it is not negligible."""
    top = max(0.0, freedom / (S + 2) - 1)
    width = (1 + top) / math.sqrt(freedom / 2) + 1 / (S / 2 + 1)
    u = np.linspace(max(0.0, top - 30 * width), top + 60 * width, 40_001)
    logs = freedom / 2 * np.log1p(u) - u * (S / 2 + 1)
    most = float(logs.max())
    return most + math.log(float(simpson(np.exp(logs - most), x=u)))


# ---- Sides of the stop ---------------------------------------------------------------------------


def level_sides(
    theta: FloatArray, answer: SuperArm, epsilon: float, radii: Sequence[float]
) -> Sides:
    """Stop when no set that differs from `answer` by d swaps can be ahead by epsilon, for any d.

    The strongest at level d has the d greatest outside in the place of the d least inside. Levels
    beyond those of `radii` are left out.
    """
    inside = sorted(answer, key=lambda i: theta[i])
    outside = sorted(set(range(len(theta))) - set(answer), key=lambda i: -theta[i])
    most = -math.inf
    for d in range(1, min(len(radii), len(inside), len(outside)) + 1):
        rival = tuple(sorted({*inside[d:], *outside[:d]}))
        gap, radius = value(theta, inside[:d]) - value(theta, outside[:d]), radii[d - 1]
        if radius - gap > most:
            most = radius - gap
            sides = Sides(answer, rival, gap, radius, gap + epsilon >= radius)
    return sides


def icb_level_sides(
    theta: FloatArray, W: FloatArray, answer: SuperArm, epsilon: float, C: float
) -> Sides:
    """Algorithm 4 by sorts: the rival drops the d arms that are cheapest to lose, at their lowest.

    It takes in the d most promising of the others, at their highest.
    """
    width = C * np.sqrt(W.diagonal())
    inside = sorted(answer, key=lambda i: theta[i] - width[i])
    outside = sorted(set(range(len(theta))) - set(answer), key=lambda i: -(theta[i] + width[i]))
    most = -math.inf
    for d in range(1, min(len(inside), len(outside)) + 1):
        gap = value(theta, inside[:d]) - value(theta, outside[:d])
        radius = value(width, [*inside[:d], *outside[:d]])
        if radius - gap > most:
            most, rival = radius - gap, tuple(sorted({*inside[d:], *outside[:d]}))
            sides = Sides(answer, rival, gap, radius, gap + epsilon > radius)
    return sides


def sphere_radii(W: FloatArray, levels: int, C: float) -> list[float]:
    """Return C sqrt(2 d mu), mu the greatest eigenvalue of W on the complement of 1."""
    n = len(W)
    P = np.eye(n) - np.ones((n, n)) / n
    mu = float(np.linalg.eigvalsh(P @ W @ P)[-1])
    return [C * math.sqrt(2 * d * mu) for d in range(1, levels + 1)]


def decided(
    theta: FloatArray, arms: Sequence[int], places: int, radius: float
) -> tuple[set[int], set[int]]:
    """Return the arms that are more than the radius of one swap ahead, and those as far behind.

    Ahead of the best arm left out, that is, when `places` of them are to be taken; behind the last
    one taken.
    """
    order = sorted(range(len(theta)), key=lambda i: -theta[i])
    last, first_out = theta[order[places - 1]], theta[order[places]]
    accepted = {arms[i] for i in order if theta[i] - first_out > radius}
    rejected = {arms[i] for i in order if last - theta[i] > radius}
    return accepted, rejected
