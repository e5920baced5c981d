"""Decision classes: what may be chosen."""

from superarm.decision.topk import TopK

__all__ = ["TopK"]
