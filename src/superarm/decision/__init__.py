"""Decision classes: what may be chosen."""

from superarm.decision.base import NOBODY, Decision, as_rows, indicators
from superarm.decision.matching import Matchings
from superarm.decision.matroid import (
    CustomMatroid,
    LinearMatroid,
    Matroid,
    Partition,
    SpanningTrees,
    Transversal,
)
from superarm.decision.path import Paths
from superarm.decision.span import span_basis, spanning_sets
from superarm.decision.topk import TopK

__all__ = [
    "NOBODY",
    "CustomMatroid",
    "Decision",
    "LinearMatroid",
    "Matchings",
    "Matroid",
    "Partition",
    "Paths",
    "SpanningTrees",
    "TopK",
    "Transversal",
    "as_rows",
    "indicators",
    "span_basis",
    "spanning_sets",
]
