"""Every error that a user can cause, in one tree.

::

    SuperarmError (a ValueError)
    ├── ProblemError     the question: arms, k, epsilon, delta, direction
    │   └── NegativeCycleError  costs go down round a cycle, so that no path is the cheapest
    ├── NoiseError       a noise model that cannot be, or means it cannot have
    ├── SettingError     a setting of an algorithm, a design, a schedule or a driver
    ├── SupportError     measured super-arms that cannot tell the arms apart
    ├── TotalError       a measured total that is no number, or out of the noise model's range
    ├── PullError        a pull id that was never asked
    ├── ConflictError    another total for a pull that has one already
    ├── DataError        a file that is missing, empty or malformed (with the line)
    ├── CampaignError    a campaign that is not there, or whose state does not allow it
    ├── MeasurementError a program that is to measure, and fails or gives no total
    └── StoreError       a store that cannot be used: locked, damaged, full, newer, out of reach

Each message says what was wrong, with which value, and what to do.
"""

from __future__ import annotations


class SuperarmError(ValueError):
    """Anything that the user can put right."""


class ProblemError(SuperarmError):
    """The question does not make sense."""


class NegativeCycleError(ProblemError):
    """Costs go down for ever round a cycle, so that there is no cheapest path to be found."""


class NoiseError(SuperarmError):
    """The noise model does not make sense, or not with these means."""


class SettingError(SuperarmError):
    """A setting is not one of those that there are, or out of range."""


class SupportError(SuperarmError):
    """The measured super-arms cannot tell the arms apart."""


class TotalError(SuperarmError):
    """A total is not a finite number, or impossible under the noise model."""


class PullError(SuperarmError):
    """A pull id was never asked."""


class ConflictError(SuperarmError):
    """A pull has a total already, and it is another one."""


class DataError(SuperarmError):
    """A file is missing, empty or malformed."""


class CampaignError(SuperarmError):
    """There is no such campaign, or its state does not allow what was asked of it."""


class MeasurementError(SuperarmError):
    """What was to measure a total failed, or gave none that can be."""


class StoreError(SuperarmError):
    """The store of campaigns cannot be used as it is; `passing` where another try may do."""

    passing = False
