"""Studies: algorithms on instances, many times, into one tidy table."""

from superarm.study.cells import Cell, Instance, Study
from superarm.study.files import read_study
from superarm.study.results import Results

__all__ = ["Cell", "Instance", "Results", "Study", "read_study"]
