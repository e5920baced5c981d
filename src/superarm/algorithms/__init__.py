"""Algorithms: one file each."""

from superarm.algorithms.base import Algorithm, Static
from superarm.algorithms.certified import Certified
from superarm.algorithms.csar import CSAR
from superarm.algorithms.exhaustive import Exhaustive
from superarm.algorithms.focused import Focused
from superarm.algorithms.icb import ICB
from superarm.algorithms.sa_foa import SAFOA
from superarm.algorithms.saqm import SAQM
from superarm.problem import Problem

ALGORITHMS: dict[str, type[Algorithm]] = {
    rule.name: rule for rule in (Certified, Focused, SAQM, SAFOA, ICB, Exhaustive, CSAR)
}


def default_algorithm(problem: Problem) -> Static:
    """Return the rule that is taken where none is named."""
    return Certified() if problem.topk else ICB()


__all__ = [
    "ALGORITHMS",
    "CSAR",
    "ICB",
    "SAFOA",
    "SAQM",
    "Algorithm",
    "Certified",
    "Exhaustive",
    "Focused",
    "Static",
    "default_algorithm",
]
