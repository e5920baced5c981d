"""The checks: each reads a fit, and drafts a finding with the sentences for either outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from scipy import stats
from scipy.linalg import eigh

from superarm.diagnostics.findings import VOID, Draft, Finding, equals, unknown
from superarm.diagnostics.fit import Fit, Index, Matrix, Vector
from superarm.noise import Gaussian, Labels, Noise

Names = Callable[[int], str]

STRETCHES = 32
"""Into so many stretches of pulls the search for a change cuts the measuring, at most."""

_DRAWS = 4_999
_SHIFT = 2.0  # standard errors by which the expected total of labels is moved towards what was seen


def additive(fit: Fit, group_name: Names) -> Draft:
    """Lack of fit: groups' means about the fit, against replicates of the same group.

    F = (sum w T (mean - fitted)^2 / (m - r)) / (sum w (y - mean)^2 / (N - m)).
    """
    df, pure = fit.lack_freedom, fit.pure_freedom
    if df < 1:
        return unknown("additive", "Any totals of so few different groups are sums of arms' parts.")
    if pure < 1:
        return unknown(
            "additive",
            "No group was measured twice, so that a total that is no sum cannot be told from "
            "noise; measure some groups again.",
        )
    if fit.lack_squares == 0.0 or fit.pure_squares == 0.0:
        if fit.lack_squares == 0.0:
            return unknown("additive", "The mean totals are sums of arms' parts to the digit.")
        ratio, p = math.inf, 0.0
    else:
        ratio = (fit.lack_squares / df) / (fit.pure_squares / pure)
        p = float(stats.f.sf(ratio, df, pure))
    law = f"F({df}, {pure})"
    away = (fit.means - fit.fitted) * np.sqrt(
        fit.weights * fit.counts / np.maximum(1e-9, 1 - fit.counts * fit.leverages)
    )
    worst = int(np.argmax(np.abs(away)))
    gap = float(fit.means[worst] - fit.fitted[worst])
    said = f"{law} = {ratio:.3g}, {equals(p)}"
    alarm = (
        f"The mean totals of groups are not sums of their members' parts: they miss them by more "
        f"than repeated pulls of a group differ ({said}); furthest off "
        f"is {group_name(worst)}, by {gap:+.3g}. {VOID} Look for members who help or hinder each "
        f"other, and measure the groups in question directly."
    )
    calm = f"No sign that totals are not sums of their members' parts ({said})."
    details = {"group": group_name(worst), "by": gap}
    return Draft(Finding("additive", ratio, law, p, calm, details=details), alarm)


def curvature(fit: Fit, noise: Noise) -> Draft:
    """Tukey's one degree of freedom: does the square of the fitted total explain anything more."""
    centre = float(fit.fitted @ fit.counts) / fit.pulls
    squares = ((fit.fitted - centre) ** 2)[fit.group][:, None]
    draft = _one(fit, noise, squares)
    if isinstance(draft, str):
        return unknown("curvature", f"Diminishing or growing returns cannot be told: {draft}.")
    t, p, law, slope = draft
    way = "more" if slope > 0 else "less"
    other = "less" if slope > 0 else "more"
    alarm = (
        f"Strong and weak groups give {way} than the sum of their members' parts, and those in "
        f"between {other} ({law} = {t:.3g}, {equals(p)}). {VOID} Analyse totals on a scale on "
        f"which they add up (times add where rates do not, and logarithms where factors multiply)."
    )
    calm = f"No sign of diminishing or growing returns ({law} = {t:.3g}, {equals(p)})."
    return Draft(Finding("curvature", t, law, p, calm, details={"slope": slope}), alarm)


def outliers(fit: Fit, noise: Noise, places: Sequence[str]) -> tuple[Draft, Vector]:
    """Totals too far from what the other pulls make of them; and the p-value of each pull.

    Deleted residuals have Student's t law with N - r - 1 degrees of freedom; of labels, a total is
    compared with the binomial law of the same mean (whose tails are at least as heavy). p-values
    are those of the worst of all N pulls (Sidak). A noise model that states no more than a range
    allows every total in it; there an outlier is worth a look, and no more.
    """
    if fit.squares == 0.0 or fit.freedom < 3:
        said = "There are too few pulls, or too little noise, to tell an outlier."
        return unknown("outliers", said), np.ones(fit.pulls)
    single = _label_tails(fit) if noise == Labels() else _t_tails(fit)
    harmless = not knows_variance(noise)
    family = np.asarray(-np.expm1(fit.pulls * np.log1p(-np.minimum(single, 1 - 1e-16))))
    worst = int(np.argmin(single))
    p, t = float(family[worst]), float(fit.deleted[worst])
    law = f"greatest of {fit.pulls:,}"
    expected = float(fit.totals[worst] - fit.residuals[worst] / (1 - _own(fit)[worst]))
    serious = (
        "The noise model allows it, if it is right."
        if harmless
        else "It moves the answer, and the stated noise hardly allows it."
    )
    alarm = (
        f"One total is far off: {places[worst]} has {fit.totals[worst]:.6g}, where {expected:.4g} "
        f"would be expected ({abs(t):.2g} standard deviations, {equals(p)}). {serious} Check the "
        f"entry and correct a slip of the pen; do not leave it out because of its value."
    )
    calm = f"No total is far off (the furthest is {places[worst]}, {equals(p)})."
    details = {"place": places[worst], "total": float(fit.totals[worst]), "expected": expected}
    found = Finding("outliers", t, law, p, calm, harmless=harmless, details=details)
    return Draft(found, alarm), family


def trend(fit: Fit, noise: Noise, times: Vector) -> Draft:
    """Do totals go up or down with time: Student's t of its coefficient beside the arms."""
    draft = _one(fit, noise, _scaled(times)[:, None])
    if isinstance(draft, str):
        return unknown("trend", f"A trend cannot be told: {draft}.")
    t, p, law, slope = draft
    rise = slope * float(np.ptp(_scaled(times)))
    alarm = (
        f"Totals went {'up' if rise > 0 else 'down'} while they were measured, by {abs(rise):.3g} "
        f"from first to last ({law} = {t:.3g}, {equals(p)}). The certificate counts on means that "
        f"stay the same, so that it need not hold. Find out what has changed; when measuring "
        f"again, spread all groups evenly over the time."
    )
    calm = f"No sign of a trend over time ({law} = {t:.3g}, {equals(p)})."
    return Draft(Finding("trend", t, law, p, calm, details={"rise": rise}), alarm)


def change(fit: Fit, order: Index, places: Sequence[str]) -> Draft:
    """A change at one moment that is not known: the greatest step between stretches of pulls.

    The statistic is max |t_j| over the bounds j of up to 32 stretches; its law, given which groups
    were measured when, is drawn: c ~ N(0, G) and the rest of the residuals chi-square.
    """
    stretches = min(STRETCHES, fit.pulls // 4, max(0, fit.freedom - 2))
    if stretches < 2 or fit.squares == 0.0:
        return unknown("change", "There are too few pulls, or too little noise, to tell a change.")
    bounds = np.unique((np.arange(1, stretches) * fit.pulls) // stretches)
    rank = np.empty(fit.pulls, dtype=np.int64)
    rank[order] = np.arange(fit.pulls)
    extra = fit.extra((rank[:, None] >= bounds).astype(np.float64))
    left = np.diagonal(extra.G)
    kept = left > 1e-6 * fit.pulls / stretches * float(fit.weights.mean())
    if not kept.any():
        return unknown("change", "A change over time cannot be told from the order of the groups.")
    G, score, left = extra.G[np.ix_(kept, kept)], extra.score[kept], left[kept]
    shares = np.minimum(1.0, score**2 / left / fit.squares)
    worst = int(np.argmax(shares))
    df = fit.freedom - 1
    t = math.sqrt(df * float(shares[worst]) / max(1e-300, 1 - float(shares[worst])))
    p = _greatest_step(G, fit.freedom, float(shares[worst]), t)
    at = int(bounds[kept][worst])
    step = float(score[worst] / left[worst])
    place = places[int(order[at])]
    law = f"greatest of {len(left)} |t({df})|"
    alarm = (
        f"Totals are {abs(step):.3g} {'higher' if step > 0 else 'lower'} from about {place} on "
        f"({law} = {t:.3g}, {equals(p)}). The certificate counts on means that stay the same, so "
        f"that it need not hold. Find out what has changed then; if it has to do with the "
        f"measuring only, give both parts a label and look at their offset."
    )
    calm = f"No sign of a change at some moment ({law} = {t:.3g}, {equals(p)})."
    return Draft(Finding("change", t, law, p, calm, details={"from": place, "step": step}), alarm)


def knows_variance(noise: Noise) -> bool:
    """Whether the noise model says enough of the law of a total for its variance to be known."""
    return isinstance(noise, Gaussian) or noise == Labels()


def _one(fit: Fit, noise: Noise, z: Matrix) -> tuple[float, float, str, float] | str:
    """Student's t of one more column: t, p, law and coefficient; or why there is none.

    Where nothing is stated of the variances, c is compared with its own sum of squares (HC3).
    """
    if fit.squares == 0.0:
        return "there is no noise to compare with"
    df = fit.freedom - 1
    if df < 1:
        return "there are too few pulls"
    extra = fit.extra(z)
    if not extra.rank:
        return "these groups explain it as well"
    rest = max(1e-300, fit.squares - extra.squares)
    t = math.copysign(math.sqrt(extra.squares * df / rest), float(extra.score[0]))
    if not knows_variance(noise):
        own = fit.beside(z) * fit.residuals / (1 - _own(fit))
        t = float(extra.score[0]) / max(1e-300, math.sqrt(float(own @ own)))
    p = 2 * float(stats.t.sf(abs(t), df))
    return t, p, f"t({df})", float(extra.coefficients[0])


def _greatest_step(G: Matrix, freedom: int, share: float, t: float) -> float:
    """How often the greatest share of the residuals' squares that a step explains is as great."""
    scale = 1 / np.sqrt(np.diagonal(G))
    values, vectors = eigh(G * np.outer(scale, scale))
    kept = values > 1e-8
    # The symmetric root: rounding does not turn it, as it may turn eigenvectors.
    u, rest = _draws(len(scale), int(kept.sum()), freedom)
    along = u @ vectors[:, kept]
    steps = ((along * np.sqrt(values[kept])) @ vectors[:, kept].T) ** 2
    drawn = steps.max(axis=1) / ((along**2).sum(axis=1) + rest)
    more = int((drawn >= share).sum())
    p = (more + 1) / (_DRAWS + 1)
    if more >= 10:
        return p
    return min(p, len(scale) * 2 * float(stats.t.sf(t, freedom - 1)))  # few draws: the union bound


@cache
def _draws(dimensions: int, rank: int, freedom: int) -> tuple[Matrix, Vector]:
    """Standard normal vectors, and the squares of the residuals beside them; always the same."""
    rng = np.random.default_rng(0)
    left = freedom - rank
    rest = rng.chisquare(left, _DRAWS) if left > 0 else np.zeros(_DRAWS)
    return rng.standard_normal((_DRAWS, dimensions)), rest


def _own(fit: Fit) -> Vector:
    return np.minimum(fit.leverages, 1 - 1e-9)[fit.group]


def _t_tails(fit: Fit) -> Vector:
    return np.asarray(2 * stats.t.sf(np.abs(fit.deleted), fit.freedom - 1))


def _label_tails(fit: Fit) -> Vector:
    """Tails of the binomial law with the mean that the other pulls expect.

    The mean is moved towards the total by two of its standard errors.
    """
    h, sizes = _own(fit), fit.sizes[fit.group]
    expected = fit.totals - fit.residuals / (1 - h)
    error = np.sqrt(fit.variance / fit.pull_weights * h / (1 - h))
    up = fit.totals > expected
    mean = np.where(up, expected + _SHIFT * error, expected - _SHIFT * error)
    share = np.clip(mean / sizes, 0.0, 1.0)
    above = stats.binom.sf(fit.totals - 1, sizes, share)
    tail = np.where(up, above, stats.binom.cdf(fit.totals, sizes, share))
    passed = (mean >= fit.totals) == up  # the total lies between the expected and the moved mean
    return np.where(passed, 1.0, np.minimum(1.0, 2 * tail))


def _scaled(times: Vector) -> Vector:
    width = float(np.ptp(times))
    return (times - times.min()) / width if width > 0 else np.zeros_like(times)
