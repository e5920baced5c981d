"""What a design is: a question in, a plan out."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from superarm.plan import Plan
from superarm.problem import Problem


class Design(ABC):
    """Chooses the super-arms to measure and their proportions before anything is measured."""

    @abstractmethod
    def plan(self, problem: Problem, rng: np.random.Generator) -> Plan:
        """Return a plan for `problem`; `rng` decides what the design leaves to chance."""
