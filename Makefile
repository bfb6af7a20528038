# Two commands matter: `make up` and `make test`. Each installs what it needs into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Two workers: half of the tests wait for servers, not for the processor.
PYTEST_ARGS ?= -n 2 --dist loadfile
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
# Images of Python often say to keep no bytecode. Servers and Spark's workers are started by the hundred here, and each
# would compile all of its modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up test check bench demo tour lock system clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The stamps name what is installed: a changed lock file or pyproject.toml installs again.
$(VENV)/base.stamp: requirements/base.lock pyproject.toml | $(VENV)/bin/python
	@if [ -f $(VENV)/test.stamp ]; then true; else $(PIP) install -q --require-hashes -r requirements/base.lock; fi
	$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/spark.stamp: requirements/spark.lock pyproject.toml | $(VENV)/bin/python
	@if [ -f $(VENV)/test.stamp ]; then true; else $(PIP) install -q --require-hashes -r requirements/spark.lock; fi
	$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/base.stamp

$(VENV)/test.stamp: requirements/test.lock pyproject.toml | $(VENV)/bin/python
	$(PIP) install -q --require-hashes -r requirements/test.lock
	$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/spark.stamp $(VENV)/base.stamp

up: $(VENV)/base.stamp ## install, then start everything on loopback (Ctrl-C stops)
	@exec $(BIN)/headgate up

check: $(VENV)/test.stamp ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(VENV)/test.stamp system check ## install all that the tests need, then run every check and test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

bench: $(VENV)/test.stamp system ## every benchmark, ours and the peer side by side; tables in benchmarks/results
	$(BIN)/python -m benchmarks

demo: $(VENV)/spark.stamp ## HTTP in, poison and all, a Spark pipeline, a table and dead letters out: under three minutes
	@$(BIN)/python examples/demo.py

tour: $(VENV)/base.stamp ## the command line: start, produce, consume, groups, schemas
	@$(BIN)/python examples/tour.py

system: ## a JDK, Maven, Node.js, Chromium, curl and kcat for the tests, where the package manager can
	@sh requirements/system.sh

lock: $(VENV)/bin/python ## resolve the lock files again
	@sh requirements/lock.sh $(BIN)

clean: ## remove what the targets made
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
