"""superarm campaign: measurements by many hands, over weeks, kept in a store."""

from __future__ import annotations

import click

from superarm.cli.campaign.change import amend, record, retire, undo, void
from superarm.cli.campaign.keep import delete, export, load
from superarm.cli.campaign.measure import ask, back, extend, tell
from superarm.cli.campaign.new import new
from superarm.cli.campaign.report import (
    changes,
    diagnose,
    history,
    looks,
    open_pulls,
    overview,
    status,
)
from superarm.cli.campaign.run import run
from superarm.cli.verify import verify


@click.group()
def campaign() -> None:
    """Measure by many hands, over days or weeks: ask for pulls, tell totals, see how it stands."""


for command in (
    *(new, overview, ask, tell, status, run),
    *(open_pulls, back, extend, history, looks, changes, diagnose),
    *(amend, void, undo, retire, record),
    *(export, load, verify, delete),
):
    campaign.add_command(command)
