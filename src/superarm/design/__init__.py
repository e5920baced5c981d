"""Designs: where to measure."""

from superarm.design.allocation import Allocation
from superarm.design.base import Design
from superarm.design.cyclic import Cyclic
from superarm.design.g_optimal import GOptimal, g_optimal
from superarm.design.listed import Listed
from superarm.design.rounding import efficient_rounding
from superarm.design.uniform import Uniform, Weighted
from superarm.design.xy_optimal import XYOptimal, xy_optimal

__all__ = [
    "Allocation",
    "Cyclic",
    "Design",
    "GOptimal",
    "Listed",
    "Uniform",
    "Weighted",
    "XYOptimal",
    "efficient_rounding",
    "g_optimal",
    "xy_optimal",
]
