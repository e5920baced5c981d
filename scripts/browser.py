"""Provide the browser that the dashboard's tests drive: one that is there, or get one.

In this order: $CHROMIUM, an installed Chromium or Chrome, Playwright's own, then `playwright
install chromium`, then apt (as root on Debian or Ubuntu). With none of them, one line says what is
not run; with SUPERARM_BROWSER=required that is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def find() -> str | None:
    """Return the path of a browser that is there."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    installed = next((path for name in NAMES if (path := shutil.which(name))), None)
    return installed or next((path for path in PLACES if Path(path).exists()), None) or own()


def own() -> str | None:
    """Return the path of Playwright's own browser, if it is installed."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def get() -> None:
    """Try to install one, without a word."""
    if quietly(sys.executable, "-m", "playwright", "install", "chromium") and own():
        return
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        install = ("apt-get", "install", "--yes", "--no-install-recommends", "chromium")
        if not quietly(*install) and quietly("apt-get", "update"):
            quietly(*install)


def quietly(*command: str) -> bool:
    """Run a command, for ten minutes at most; return whether it went well."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, capture_output=True, timeout=600, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def main() -> int:
    """Find or get a browser; say so if there is none."""
    if find():
        return 0
    if not os.environ.get("CHROMIUM"):
        print("browser: getting one for the dashboard's tests ...", flush=True)
        get()
    if find():
        return 0
    named = os.environ.get("CHROMIUM")
    why = f"CHROMIUM={named} is no program" if named else "no Chromium or Chrome is here"
    print(f"browser: {why}, so that tests/test_dashboard.py is not run", file=sys.stderr)
    return 1 if os.environ.get("SUPERARM_BROWSER") == "required" else 0


if __name__ == "__main__":
    sys.exit(main())
