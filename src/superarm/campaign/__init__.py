"""Campaigns: identification with real measurements, over days and by many hands."""

from superarm.campaign.campaign import Campaign
from superarm.campaign.records import Change, LookTaken, OpenPull, Pull, Result, Told
from superarm.campaign.status import ArmStatus, Status
from superarm.campaign.store import Store
from superarm.campaign.summary import Summary
from superarm.campaign.verify import Verified, verify_file

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
    "Summary",
    "Told",
    "Verified",
    "verify_file",
]
