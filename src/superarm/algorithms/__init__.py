"""Algorithms: one file each."""

from superarm.algorithms.base import Algorithm, Static
from superarm.algorithms.exhaustive import Exhaustive
from superarm.algorithms.icb import ICB
from superarm.algorithms.sa_foa import SAFOA
from superarm.algorithms.saqm import SAQM

ALGORITHMS: dict[str, type[Static]] = {rule.name: rule for rule in (SAQM, SAFOA, ICB, Exhaustive)}

__all__ = ["ALGORITHMS", "ICB", "SAFOA", "SAQM", "Algorithm", "Exhaustive", "Static"]
