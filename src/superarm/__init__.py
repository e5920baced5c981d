"""superarm: find the best k of n when only totals can be measured.

Names are loaded when first used, so that ``superarm --help`` starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm.algorithms import (
        CSAR,
        ICB,
        SAFOA,
        SAQM,
        Algorithm,
        Certified,
        Exhaustive,
        Focused,
    )
    from superarm.analysis import Analysis, analyse
    from superarm.campaign import Campaign, Store
    from superarm.client import Client
    from superarm.decision import (
        CustomMatroid,
        Decision,
        LinearMatroid,
        Matchings,
        Partition,
        Paths,
        SpanningTrees,
        TopK,
        Transversal,
    )
    from superarm.design import (
        Allocation,
        Cyclic,
        Design,
        GOptimal,
        Listed,
        Uniform,
        Weighted,
        XYOptimal,
        efficient_rounding,
        g_optimal,
        xy_optimal,
    )
    from superarm.diagnostics import Diagnostics, Finding, Offset, diagnose
    from superarm.errors import (
        CampaignError,
        ConflictError,
        DataError,
        MeasurementError,
        NegativeCycleError,
        NoiseError,
        ProblemError,
        PullError,
        SettingError,
        StoreError,
        SuperarmError,
        SupportError,
        TotalError,
    )
    from superarm.forecasting import Forecast, Simulated, forecast
    from superarm.identification import Identification, Pull
    from superarm.noise import Noise, bounded, gaussian, labels, parse_noise, total
    from superarm.problem import Problem
    from superarm.quadratic import Maximisation, maximise
    from superarm.schedule import Cycles, Every, Geometric, Planned, Schedule, parse_schedule
    from superarm.simulation import (
        Environment,
        Recorded,
        Replications,
        Run,
        environment,
        replicate,
        simulate,
    )
    from superarm.simulation.replay import Replay
    from superarm.simulation.synthetic import synthetic
    from superarm.study import Cell, Instance, Results, Study, read_study
    from superarm.verdict import Certificate, Verdict

__all__ = [
    "CSAR",
    "ICB",
    "SAFOA",
    "SAQM",
    "Algorithm",
    "Allocation",
    "Analysis",
    "Campaign",
    "CampaignError",
    "Cell",
    "Certificate",
    "Certified",
    "Client",
    "ConflictError",
    "CustomMatroid",
    "Cycles",
    "Cyclic",
    "DataError",
    "Decision",
    "Design",
    "Diagnostics",
    "Environment",
    "Every",
    "Exhaustive",
    "Finding",
    "Focused",
    "Forecast",
    "GOptimal",
    "Geometric",
    "Identification",
    "Instance",
    "LinearMatroid",
    "Listed",
    "Matchings",
    "Maximisation",
    "MeasurementError",
    "NegativeCycleError",
    "Noise",
    "NoiseError",
    "Offset",
    "Partition",
    "Paths",
    "Planned",
    "Problem",
    "ProblemError",
    "Pull",
    "PullError",
    "Recorded",
    "Replay",
    "Replications",
    "Results",
    "Run",
    "Schedule",
    "SettingError",
    "Simulated",
    "SpanningTrees",
    "Store",
    "StoreError",
    "Study",
    "SuperarmError",
    "SupportError",
    "TopK",
    "TotalError",
    "Transversal",
    "Uniform",
    "Verdict",
    "Weighted",
    "XYOptimal",
    "analyse",
    "bounded",
    "diagnose",
    "efficient_rounding",
    "environment",
    "forecast",
    "g_optimal",
    "gaussian",
    "labels",
    "maximise",
    "parse_noise",
    "parse_schedule",
    "read_study",
    "replicate",
    "simulate",
    "synthetic",
    "total",
    "xy_optimal",
]

_HOMES = {
    "algorithms": (
        "Algorithm",
        "CSAR",
        "Certified",
        "Exhaustive",
        "Focused",
        "ICB",
        "SAFOA",
        "SAQM",
    ),
    "analysis": ("Analysis", "analyse"),
    "campaign": ("Campaign", "Store"),
    "client": ("Client",),
    "decision": (
        "CustomMatroid",
        "Decision",
        "LinearMatroid",
        "Matchings",
        "Partition",
        "Paths",
        "SpanningTrees",
        "TopK",
        "Transversal",
    ),
    "design": (
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
    ),
    "diagnostics": ("Diagnostics", "Finding", "Offset", "diagnose"),
    "errors": (
        "CampaignError",
        "ConflictError",
        "DataError",
        "MeasurementError",
        "NegativeCycleError",
        "NoiseError",
        "ProblemError",
        "PullError",
        "SettingError",
        "StoreError",
        "SuperarmError",
        "SupportError",
        "TotalError",
    ),
    "forecasting": ("Forecast", "Simulated", "forecast"),
    "identification": ("Identification", "Pull"),
    "noise": ("Noise", "bounded", "gaussian", "labels", "parse_noise", "total"),
    "problem": ("Problem",),
    "quadratic": ("Maximisation", "maximise"),
    "schedule": ("Cycles", "Every", "Geometric", "Planned", "Schedule", "parse_schedule"),
    "simulation": (
        "Environment",
        "Recorded",
        "Replications",
        "Run",
        "environment",
        "replicate",
        "simulate",
    ),
    "simulation.replay": ("Replay",),
    "simulation.synthetic": ("synthetic",),
    "study": ("Cell", "Instance", "Results", "Study", "read_study"),
    "verdict": ("Certificate", "Verdict"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("superarm")
    if name in _HOME_OF:
        return getattr(import_module(f"superarm.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'superarm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
