"""The paper's figures and tables, and ours: `compute` writes data, `plot` and `page` read it."""

from superarm.experiments.base import ALL, EXPERIMENTS, Settings, reproduce

__all__ = ["ALL", "EXPERIMENTS", "Settings", "reproduce"]
