"""Simulation: environments with known means, and whole runs in a moment."""

from superarm.simulation.engine import Run, simulate
from superarm.simulation.environments import Environment, LinearEnvironment, Recorded, environment
from superarm.simulation.replicate import Replications, replicate

__all__ = [
    "Environment",
    "LinearEnvironment",
    "Recorded",
    "Replications",
    "Run",
    "environment",
    "replicate",
    "simulate",
]
