"""The constants C_t: as in the reference, and shares of delta that add up to delta."""

import math

import numpy as np
import pytest

from superarm import reference
from superarm.confidence import ellipsoid, independent


@pytest.mark.parametrize("constants", ["corrected", "paper"])
@pytest.mark.parametrize("t", [2, 10, 10**6])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (10, 5), (111, 10)])
def test_constants_equal_the_reference(n, k, t, constants):
    log_size = reference.log_choose(n, k)
    assert ellipsoid(1.5, log_size, 0.05, constants).at(t) == pytest.approx(
        reference.ellipsoid_constant(t, 1.5, n, k, 0.05, constants), rel=1e-12
    )
    assert independent(1.5, n, 0.05, constants).at(t) == pytest.approx(
        reference.independent_constant(t, 1.5, n, 0.05, constants), rel=1e-12
    )


def spent(radius, events):
    """Sum over rounds of the sub-Gaussian tail exp(-C_t^2 / 2) of all events (sigma = 1)."""
    t = np.arange(1.0, 2e6)
    C2 = radius.scale**2 * (2 * np.log(t) + radius.offset)
    return float(events * np.exp(-C2 / 2).sum())


def test_corrected_shares_add_up_to_delta_and_those_of_lemma_1_as_printed_do_not():
    delta, n, K = 0.05, 20, math.comb(20, 5)
    assert spent(ellipsoid(1.0, math.log(K), delta, "corrected"), K) == pytest.approx(
        delta, rel=1e-4
    )
    assert spent(independent(1.0, n, delta, "corrected"), n) == pytest.approx(delta, rel=1e-4)
    assert spent(independent(1.0, n, delta, "paper"), n) > 2 * delta
    assert spent(ellipsoid(1.0, math.log(K), delta, "paper"), K) < delta
