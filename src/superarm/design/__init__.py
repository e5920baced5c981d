"""Designs: where to measure."""

from superarm.design.base import Design
from superarm.design.uniform import Uniform, Weighted

__all__ = ["Design", "Uniform", "Weighted"]
