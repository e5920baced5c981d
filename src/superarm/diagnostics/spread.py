"""Is the noise as stated: the spread of totals against sigma, of labels against independence."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from superarm.diagnostics.findings import VOID, Draft, Finding, equals, unknown
from superarm.diagnostics.fit import Fit
from superarm.noise import Gaussian, Labels, Noise

_ENOUGH_PURE = 30  # degrees of freedom of replicates that are enough to judge the spread by
_SURE = 0.95


def scale(fit: Fit, noise: Noise) -> Draft:
    """The spread against the stated sigma: sum of squares / sigma^2 is chi-square.

    From replicates where there are enough of them, else from all residuals. A noise model that is
    not normal states no more than an upper end, so that only a larger spread speaks against it.
    """
    if not noise.known:
        return unknown("scale", "Sigma is estimated: there is no stated one to compare with.")
    sigma = np.array([noise.sigma(int(size)) for size in fit.sizes])
    pure = fit.pure_freedom >= min(_ENOUGH_PURE, max(1, fit.freedom))
    df = fit.pure_freedom if pure else fit.freedom
    if df < 1:
        return unknown("scale", "There are too few pulls to judge the stated noise by.")
    by_group = fit.group_squares if pure else fit.group_residual_squares
    chi = float((by_group / sigma**2).sum())
    above, below = float(stats.chi2.sf(chi, df)), float(stats.chi2.cdf(chi, df))
    exact = isinstance(noise, Gaussian)
    p = min(1.0, 2 * min(above, below)) if exact else above
    law = f"chi-square({df})"
    ratio = math.sqrt(chi / df)
    low = ratio * math.sqrt(df / float(stats.chi2.isf((1 - _SURE) / 2, df)))
    high = ratio * math.sqrt(df / max(1e-300, float(stats.chi2.isf((1 + _SURE) / 2, df))))
    said = f"{ratio:.3g} times the stated sigma (between {low:.3g} and {high:.3g} times)"
    whose = "repeated pulls of a group" if pure else "totals about the fit"
    details = {"ratio": ratio, "low": low, "high": high, "from": "replicates" if pure else "fit"}
    small = chi > df
    if small:
        remedy = (
            "members of a group seem not to be independent: state the model without independence"
            if not exact and not (isinstance(noise, Labels) and noise.shared)
            else "state a larger sigma that you can defend"
        )
        also = "" if pure else "it may be that totals are no sums; "
        alarm = (
            f"The stated noise is too small: {whose} differ by {said}, {equals(p)}. The "
            f"certificate counts on the stated one, so that it need not hold. Look "
            f"first for drift, offsets and slips of the pen, which widen the spread too; {also}"
            f"if there are none, {remedy}."
        )
    else:
        alarm = (
            f"The stated noise is larger than what is seen: {whose} differ by {said}, {equals(p)}. "
            f"A certificate holds all the same; with a smaller sigma, if you can defend one, fewer "
            f"pulls would do."
        )
    calm = f"The stated noise is in order: {whose} differ by {said}, {equals(p)}."
    if not exact and not small:
        calm = f"Nothing against the stated noise: {whose} differ by {said}."
    found = Finding("scale", chi, law, p, calm, harmless=not small, details=details)
    return Draft(found, alarm)


def independence(fit: Fit) -> Draft | None:
    """Labels of independent arms: the spread of replicates against sum p (1 - p) over the members.

    D = sum SS_g - (T_g - 1) V_g over the groups, with V_g the estimated variance (freed of what
    the errors of the estimates take from it), has mean 0; its variance is that of the sums of
    squares, with their kurtosis, and of the estimates. D plus its expected sum of squares is
    compared with a chi-square law of this variance. None where there are too few replicates.
    Weights here would be estimates too, and bring a bias.
    """
    df = fit.pure_freedom
    diagonal = fit.diagonal
    if df < _ENOUGH_PURE or diagonal is None or fit.squares == 0.0:
        return None
    p = np.clip(fit.theta, 0.0, 1.0)
    V = fit.X @ (fit.theta * (1 - fit.theta) + fit.variance * diagonal)
    own, T = fit.counts - 1, fit.counts
    D = float((fit.group_squares - own * V).sum())
    V = np.maximum(V, 0.1 * fit.sizes / 4)
    pq = p * (1 - p)
    fourth = fit.X @ (pq * (1 - 6 * pq))
    third = fit.X @ (pq * (1 - 2 * p))
    # Of D, sum u_i (theta^_i - theta_i) comes from the estimates.
    u = (1 - 2 * p) * (fit.X.T @ own)
    moved = fit.weights * (fit.X @ fit.solve(u))
    variance = float((2 * own * V**2 + fourth * own**2 / T).sum())
    variance += float((T * V * moved**2).sum()) - 2 * float((own * third * moved).sum())
    expected = float(own @ V)
    freedom = 2 * expected**2 / max(variance, 0.1 * float(own @ V**2))
    chi = freedom * (1 + D / expected)
    tail = float(stats.chi2.sf(chi, freedom))
    ratio = 1 + D / expected
    said = f"{ratio:.3g} times the variance that independent labels would have"
    law = f"chi-square({freedom:.4g})"
    alarm = (
        f"Members of a group do not give their labels independently: repeated pulls of a group "
        f"have {said} ({equals(tail)}). {VOID} Look first for drift and offsets, which widen the "
        f"spread too; if there are none, state labels that are shared, and analyse again."
    )
    calm = f"Nothing against independent labels: repeated pulls have {said} ({equals(tail)})."
    return Draft(Finding("independence", chi, law, tail, calm, details={"ratio": ratio}), alarm)
