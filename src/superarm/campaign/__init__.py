"""Campaigns: identification with real measurements, over days and by many hands."""

from superarm.campaign.campaign import Campaign
from superarm.campaign.records import Change, LookTaken, OpenPull, Pull, Result, Told
from superarm.campaign.status import ArmStatus, Status
from superarm.campaign.store import Store

__all__ = [
    "ArmStatus",
    "Campaign",
    "Change",
    "LookTaken",
    "OpenPull",
    "Pull",
    "Result",
    "Status",
    "Store",
    "Told",
]
