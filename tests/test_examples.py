"""Every example runs, here with small numbers, and says what it is to say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import matplotlib
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
RUNS = {
    "crew": ((), "Verdict: with a probability of at least 95%"),
    "network": ((), "The path: sensor > "),
    "keywords": ((300, 10), "With a probability of at least 95 %"),
    "channels": ((3, 4), "In truth the best assignment carries"),
    "assay": ((20, 4), "times as many wells"),
}


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_run_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_an_example_runs_and_is_certified(name, tmp_path, monkeypatch, capsys):
    module = load(name)
    if hasattr(module, "PICTURE"):
        monkeypatch.setattr(module, "PICTURE", tmp_path / "build" / "picture.png")
    arguments, conclusion = RUNS[name]
    with matplotlib.rc_context():
        module.main(*arguments)
    printed = capsys.readouterr().out
    assert conclusion in printed
    assert "not certified" not in printed
    assert "the limit of" not in printed
    if hasattr(module, "PICTURE"):
        assert module.PICTURE.stat().st_size > 10_000


def test_the_channels_of_the_example_are_shared_out():
    """The assignment is a matching, and no worse than taking turns."""
    module = load("channels")
    means = module.rates(4, 6)
    assert means.shape == (4, 6)
    assert means.min() > 0
    best = module.sa.Matchings([(u, c) for u in range(4) for c in range(6)]).best(means.ravel())
    assert module.greedily(means) <= means.ravel()[best].sum() + 1e-9
