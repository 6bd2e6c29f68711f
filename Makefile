# make bench: set up, run the whole matrix at tiny, publish the site.   make test: set up, check, test.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
SCALE ?= tiny
QUICK ?=
STACK ?=

.PHONY: help setup bench test lint site serve baseline clean

help:
	@echo "make bench            set up, run the whole matrix at tiny, publish the site in html/"
	@echo "                      QUICK=1 takes one sample a cell; STACK=name runs one stack"
	@echo "make test             set up, lint, check types, run the tests (in asv's environments)"
	@echo "make site             publish the committed results again"
	@echo "make serve            serve the site on http://127.0.0.1:8080"
	@echo "make baseline         our time a step against a bare loop of the same calls"
	@echo "make clean            remove the environments and the tools"

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "stepline: $(PYTHON) was not found: install Python 3.11, or say make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

bench: setup
	$(BIN)/stepline bench --scale $(SCALE) $(if $(QUICK),--quick) $(STACK:%=--stack %)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy env_matrix
	$(BIN)/stepline lock --check

test: lint
	$(BIN)/python -m pytest

site: setup
	$(BIN)/stepline site

serve: setup
	$(BIN)/asv preview --port 8080

baseline: setup
	$(BIN)/python scripts/baseline.py

clean:
	rm -rf $(VENV) .asv
