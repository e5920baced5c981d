"""Blocks drawn at once have the law of single pulls.

Sum, sum of squares and scatter of blocks of 7 pulls, in bulk against the slow reference one at a
time, 40,000 blocks each; the claim is that no p-value is below 1e-5.
"""

from __future__ import annotations

from functools import partial

from test_simulation import LAWS, SURELY, blocks, one_at_a_time, p_value

TITLE = "Laws"
HEADER = ("noise", "blocks", "p (sum)", "p (squares)", "p (scatter)")
BLOCKS, SIZE = 40_000, 7


def jobs():
    """One job a law."""
    for name in LAWS:
        yield f"law of {name}", partial(compare, name)


def compare(name):
    """Two-sample tests of one law."""
    noise, law = LAWS[name]
    bulk, single = blocks(noise, SIZE, BLOCKS, 11), one_at_a_time(law, SIZE, BLOCKS, 12)
    scatter = [squares - sums**2 / SIZE for sums, squares in (bulk, single)]
    p = [p_value(bulk[0], single[0]), p_value(bulk[1], single[1]), p_value(*scatter)]
    return (name, f"{BLOCKS:,}", *(f"{value:.3g}" for value in p)), min(p) > SURELY
