"""The paper's figures and tables, a file each: `compute` writes data, `plot` and `page` read it."""

from superarm.experiments.base import EXPERIMENTS, Settings, reproduce

__all__ = ["EXPERIMENTS", "Settings", "reproduce"]
