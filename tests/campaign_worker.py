"""A process that measures for a campaign and is killed at any moment: what was acknowledged?

Run as ``campaign_worker.py STORE NAME LOG SEED SECONDS KINDS``. Every line of LOG is written after
the call has returned: what it says must be in the store whatever happens next.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import superarm as sa


def value(id: str) -> float:
    """Return the total of a pull: everybody measures the same."""
    return float(np.random.default_rng([ord(letter) for letter in id]).normal(3, 1))


def work(where: str, name: str, log: str, seed: int, seconds: float, kinds: str) -> None:
    """Do what the letters of `kinds` say, at random: tell, batch, amend, void, ask."""
    rng = np.random.default_rng(seed)
    worker = f"w{seed}"
    campaign = sa.Campaign.open(name, store=where)
    mine: list[str] = []
    end = time.monotonic() + seconds
    with open(log, "a", encoding="utf-8") as file:

        def acknowledge(kind: str, what: object) -> None:
            file.write(json.dumps([kind, what]) + "\n")
            file.flush()

        acknowledge("ready", os.getpid())
        while time.monotonic() < end:
            kind = kinds[rng.integers(len(kinds))]
            if kind == "t":
                for pull in campaign.ask(worker=worker):
                    campaign.tell(pull.id, value(pull.id), worker=worker)
                    acknowledge("tell", [[pull.id, value(pull.id)]])
                    mine.append(pull.id)
            elif kind == "b":
                batch = [(p.id, value(p.id)) for p in campaign.ask(7, worker=worker)]
                acknowledge("batch", [id for id, _ in batch])
                campaign.tell_many(batch, worker=worker)
                acknowledge("tell", batch)
                mine += [id for id, _ in batch]
            elif kind == "a" and mine:
                id = mine[rng.integers(len(mine))]
                total = round(float(rng.normal(3, 1)), 3)
                campaign.amend(id, total, reason="slip", worker=worker)
                acknowledge("amend", [id, total])
            elif kind == "v" and mine:
                id = mine.pop(rng.integers(len(mine)))
                campaign.void(id, reason="spilled", worker=worker)
                acknowledge("void", id)


def acknowledged(log: Path) -> list[tuple[str, object]]:
    """Return what a log says; a last line that was cut off was not acknowledged."""
    lines = log.read_text(encoding="utf-8").split("\n")
    return [tuple(json.loads(line)) for line in lines[:-1]]


if __name__ == "__main__":
    where, name, log, seed, seconds, kinds = sys.argv[1:]
    work(where, name, log, int(seed), float(seconds), kinds)
