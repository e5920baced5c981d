"""From "the rule has stopped once t >= a (2 log t + b)" to a number of pulls.

With C_t^2 = scale^2 (2 log t + offset), a rule that has stopped once t >= c C_t^2 H has
a = c H scale^2 and b = offset. The greater root of t = a (2 log t + b) is worked out here to the
last digits; the paper's way to a closed form costs up to a factor of about two more. N = a b.

(Where a fixed number of looks is planned C_t does not grow with t, and t = a b.)
"""

from __future__ import annotations

import math

from superarm.errors import SettingError

_SUM_OF_SQUARES = math.pi**2 / 6


def sufficient_pulls(a: float, b: float, slope: float = 2.0) -> float:
    """Return the least t >= 1 such that t' >= a (slope log t' + b) for all t' >= t; slope 2 or 0.

    t = 2a u with u - log u = y, y = log 2a + b/2. For y <= 1 every t will do. Else u is the greater
    root; u <= y + sqrt(2(y - 1)) since exp(s) >= 1 + s + s^2/2, and Newton's steps from there come
    down to it.
    """
    if math.isnan(a) or math.isnan(b) or slope not in (0, 2):
        raise SettingError(f"a and b must be numbers and the slope 2 or 0, not {a}, {b}, {slope}")
    if not 0 < a < math.inf:
        return 1.0 if a <= 0 else math.inf
    if slope == 0:
        return max(1.0, a * b)
    y = math.log(2 * a) + b / 2
    if y <= 1:
        return 1.0
    u = y + math.sqrt(2 * (y - 1))
    for _ in range(60):
        lower = u - (u - math.log(u) - y) * u / (u - 1)
        if not 1 < lower < u:
            break
        u = lower
    return max(1.0, 2 * a * u)


def mended_form(a: float, b: float, slope: float = 2.0) -> float:
    """Closed form: N + 4 a log L with L = 2 sqrt(a^2 + N), never below the root.

    The paper's steps with log t^2 = 2 log t kept: t = 2 a log t + N <= 2 a sqrt(t) + N gives
    sqrt(t) <= a + sqrt(a^2 + N) <= L, and so t <= 2 a log L^2 + N.
    """
    N = a * b
    if slope == 0:
        return max(1.0, N)
    L = 2 * math.sqrt(a * a + max(0.0, N))
    return max(1.0, N + 4 * a * math.log(max(1.0, L)))


def printed_corollary1(
    H: float, alpha: float, sigma: float, log_size: float, delta: float
) -> float:
    """Corollary 1 as printed, with C(H, delta) as its proof has it.

    T <= 8 (3 + 1/alpha)^2 sigma^2 H log(c'K/delta) + 16 (3 + 1/alpha)^2 sigma^2 H log L,
    L = 2 sqrt(16 (3 + 1/alpha)^4 sigma^4 H^2 + N), c' = 6/pi^2. The proof writes log t for log t^2,
    so that the second term is half of what it should be, and the corollary's own C(H, delta) drops
    (3 + 1/alpha)^2 from it besides. Both make the number too small: not a bound.

    Parameters
    ----------
    H, alpha
        H_epsilon, and the ratio for norms.
    sigma
        Scale of a total, kR in the paper.
    log_size
        log K.
    """
    norms = 3 + 1 / alpha
    half = 4 * norms * norms * sigma * sigma * H
    N = 2 * half * (log_size - math.log(_SUM_OF_SQUARES * delta))
    L = 2 * math.sqrt(half * half + max(0.0, N))
    return N + 4 * half * math.log(max(1.0, L))


def printed_lemma3(H: float, sigma: float, n: int, delta: float) -> float:
    """Lemma 3 as its proof prints it: T <= 16 sigma^2 H' log(c'n/delta) + C(H', delta).

    C(H', delta), for which the paper has an O, is 32 sigma^2 H' log L by the proof's own steps,
    L = 2 sqrt(64 sigma^4 H'^2 + N), N = 8 sigma^2 H' log(c'n/delta). The first term is twice what
    it has to be, the proof has H for H' (rho for rho') throughout, and Lemma 1, on which it rests,
    does not hold at level delta as printed.
    """
    a = 8 * sigma * sigma * H
    logarithm = math.log(n) - math.log(_SUM_OF_SQUARES * delta)
    L = 2 * math.sqrt(a * a + max(0.0, a * logarithm))
    return 2 * a * logarithm + 4 * a * math.log(max(1.0, L))
