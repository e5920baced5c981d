# Everyday commands; `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# python3.11 where it is there and runs, else python3; `make PYTHON=... test` takes another.
PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
# Wheels only: nothing foreign is built here, so no compiler is needed.
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input
INSTALL_LOCKED := $(INSTALL) --require-hashes --only-binary :all: --requirement
INSTALL_SELF := $(INSTALL) --no-deps --no-build-isolation --editable .
# One set of versions for every platform and every Python from 3.11 on.
LOCK := $(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --custom-compile-command "make lock"
# Stamps: a step is done again only when its lock or pyproject.toml has changed.
MADE := $(VENV)/.made
DEMO := $(VENV)/.demo
DEV := $(VENV)/.dev
BENCH := $(VENV)/.bench

.PHONY: help demo test browser evidence bench docs lint lock clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO) ## see superarm find the best crew (needs only Python 3.11 or later)
	@$(BIN)/python examples/crew.py

test: lint docs browser ## lint, types, docs and every test: what must pass before a commit
	@$(BIN)/python -m pytest --quiet --numprocesses auto --dist worksteal

browser: $(DEV) # what the dashboard's tests drive; nothing happens if it is there
	@$(BIN)/python scripts/browser.py

evidence: $(DEV) ## the long runs behind the statistical claims
	@$(BIN)/python evidence/run.py

bench: $(BENCH) ## the benchmarks
	@$(BIN)/python benchmarks/run.py

docs: $(DEV) ## build the documentation into build/docs; a warning is an error
	@echo "docs: sphinx-build"
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --fresh-env \
		--builder html --doctree-dir build/doctrees docs build/docs

lint: $(DEV) ## ruff and mypy
	@echo "lint: ruff, mypy"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary

lock: $(DEV) ## write requirements/*.txt anew from pyproject.toml (LOCKFLAGS=--upgrade: newest versions)
	@$(LOCK) $(LOCKFLAGS) --all-extras --group dev --output-file requirements/dev.txt pyproject.toml
	@$(LOCK) $(LOCKFLAGS) --group bench --constraints requirements/dev.txt \
		--output-file requirements/bench.txt pyproject.toml
	@$(LOCK) $(LOCKFLAGS) --extra plot --group build --constraints requirements/dev.txt \
		--output-file requirements/demo.txt pyproject.toml
	@if grep -n '://' requirements/*.txt; then echo "make lock: an address got into a lock" >&2; exit 1; fi

clean: ## remove all that these commands have made, the environment too
	@rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@command -v $(PYTHON) > /dev/null || { \
		echo "superarm needs Python 3.11 or later, and there is no $(PYTHON) here." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit( \
		f"superarm needs Python 3.11 or later; {sys.executable} is {v.major}.{v.minor}. " \
		"Name another: make PYTHON=/path/to/python3.11 ...")'
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
		echo "$(PYTHON) cannot make virtual environments." \
			"On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(DEMO): requirements/demo.txt pyproject.toml $(MADE)
	@echo "installing requirements/demo.txt into $(VENV) ..."
	@$(INSTALL_LOCKED) requirements/demo.txt
	@$(INSTALL_SELF)
	@touch $@

# The development lock holds all of the demo's, at the same versions.
$(DEV): requirements/dev.txt requirements/demo.txt pyproject.toml $(MADE)
	@echo "installing requirements/dev.txt into $(VENV) ..."
	@$(INSTALL_LOCKED) requirements/dev.txt
	@$(INSTALL_SELF)
	@touch $(DEMO) $@

# Solvers that only the benchmarks compare with.
$(BENCH): requirements/bench.txt $(DEV)
	@echo "installing requirements/bench.txt into $(VENV) ..."
	@$(INSTALL_LOCKED) requirements/bench.txt
	@touch $@
