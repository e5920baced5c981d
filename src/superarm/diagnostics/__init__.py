"""Diagnostics of real data: do totals look as the certificate takes them to be.

Nothing is changed by them: neither the answer nor its certificate. They are read beside it.
"""

from __future__ import annotations

from superarm.diagnostics.examination import diagnose, examine
from superarm.diagnostics.findings import Diagnostics, Finding, Offset

__all__ = ["Diagnostics", "Finding", "Offset", "diagnose", "examine"]
