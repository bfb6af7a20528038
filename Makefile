# Three commands matter: `make up`, `make quick` and `make test`. Each installs its dependencies into .venv first.
# The first of these that is new enough creates .venv.
PYTHON ?= python3 python3.13 python3.12 python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# mypy uses one core. It runs next to the fast tests.
ifneq ($(filter quick test long,$(MAKECMDGOALS)),)
MAKEFLAGS += --jobs=2
endif
PYTEST := $(BIN)/python -m pytest --dist loadfile
FAST_TESTS := tests/unit tests/contract tests/test_architecture.py
# Generated and exhaustive inputs: a third of the duration of the fast tests, and much more with coverage. `make quick`
# leaves them out.
EXHAUSTIVE_TESTS := $(addprefix tests/unit/, \
	broker/groups/test_interleavings.py broker/log/test_damaged_journals.py broker/log/test_power_loss.py \
	broker/log/test_recovery.py broker/protocol/test_record_walk.py columnar/test_agreement.py \
	columnar/test_column_size.py proxy/consume/test_row_templates.py registry/avro/test_large_unions.py \
	registry/avro/test_unions.py registry/json_schema/test_acceptance.py registry/json_schema/test_hostile.py \
	registry/json_schema/test_keywords.py registry/json_schema/test_matching.py \
	registry/json_schema/test_properties.py registry/protobuf/test_hostile.py registry/protobuf/test_properties.py \
	serdes/test_avro_round_trip.py)
# Two cores: the fast tests use the processor all the time, the others often wait for servers.
RUN_FAST := $(PYTEST) -n 2 $(FAST_TESTS) $(addprefix --ignore=,$(EXHAUSTIVE_TESTS))
RUN_SLOW := $(PYTEST) -n 4 $(EXHAUSTIVE_TESTS) \
	$(filter-out $(FAST_TESTS) tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
# Container images often set PYTHONDONTWRITEBYTECODE. The tests start hundreds of servers and Spark workers, and each of
# them would compile all of its modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up quick fast test long coverage check bench docs demo tour lock system mutants spark-matrix spark-guide \
	soak wheel clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# At parse time: it removes the stamps of an environment that does not work, before make looks at them.
ifneq ($(filter-out help clean system,$(or $(MAKECMDGOALS),help)),)
ifneq ($(shell sh requirements/environment.sh $(VENV) $(PYTHON) || echo failed),)
$(error there is no environment to install into)
endif
endif

# Installs a lock file, unless the larger one is installed already, and then this folder.
define install
	@if [ "$1" = test ] || [ ! -f $(VENV)/test.stamp ]; then \
	  echo "Installing $$(grep -c '^[a-z].*==' requirements/$1.lock) packages of requirements/$1.lock into $(VENV)."; \
	  $(PIP) install -q --require-hashes -r requirements/$1.lock; fi
	$(PIP) install -q --no-deps --no-build-isolation -e .
endef

# A stamp is newer than the installed lock file and pyproject.toml. If one of them changes, make installs again.
$(VENV)/base.stamp: requirements/base.lock pyproject.toml
	$(call install,base)
	@touch $@

$(VENV)/spark.stamp: requirements/spark.lock pyproject.toml
	$(call install,spark)
	@touch $@ $(VENV)/base.stamp

$(VENV)/test.stamp: requirements/test.lock pyproject.toml
	$(call install,test)
	@touch $@ $(VENV)/spark.stamp $(VENV)/base.stamp

up: $(VENV)/base.stamp ## install, then start everything on loopback (Ctrl-C stops)
	@exec $(BIN)/headgate up

check: $(VENV)/test.stamp ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

quick: check fast ## lint, types, unit and contract tests: no Java, no browser

fast: $(VENV)/test.stamp
	$(RUN_FAST) $(COVERAGE)

# Only the fast tests measure coverage: on Python 3.11, it takes two thirds more processor time.
test: COVERAGE := --cov --cov-report=
test: system check fast ## install the test dependencies, then run every check and test
	$(RUN_SLOW)

long: export HEADGATE_TEST_LONG := 1
long: test ## like test, with hundreds of kills and a million damaged payloads: about an hour

coverage: $(VENV)/test.stamp ## lines and branches that the unit and contract tests miss
	$(RUN_FAST) --cov --cov-report=term-missing

mutants: $(VENV)/test.stamp ## change the code in 200 places and count the changes that unit and contract tests miss
	$(BIN)/python -m tests.mutation

# Not in `make test`: it takes half an hour, and downloads 2 GB.
spark-matrix: $(VENV)/test.stamp ## part of the Spark tests with PySpark 3.5 to 4.3, also over Spark Connect
	$(BIN)/python -m tests.spark_matrix

spark-guide: $(VENV)/test.stamp ## the commands of the production guide on a Spark cluster with two workers
	$(BIN)/python -m tests.spark_guide

SOAK_MINUTES ?= 60
soak: $(VENV)/test.stamp ## a pipeline at a steady rate with faults: SOAK_MINUTES=60; chart and samples in .cache/soak
	$(BIN)/python -m tests.soak $(SOAK_MINUTES) .cache/soak

wheel: $(VENV)/test.stamp ## build the wheel and the sdist into dist/
	$(BIN)/python -m hatchling build

bench: $(VENV)/test.stamp system ## every benchmark, ours and the peer side by side; tables in benchmarks/results
	$(BIN)/python -m benchmarks

docs: $(VENV)/test.stamp ## build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

demo: $(VENV)/spark.stamp ## records and poison over HTTP, a Spark pipeline, a table and dead letters; DEMO_ARGS=--no-wait
	@$(BIN)/python examples/demo.py $(DEMO_ARGS)

tour: $(VENV)/base.stamp ## the command line: start, produce, consume, groups, schemas
	@$(BIN)/python examples/tour.py

system: ## install a JDK, Maven, Node.js, Chromium, curl and kcat for the tests
	@sh requirements/system.sh

lock: ## resolve the lock files again
	@sh requirements/lock.sh $(BIN)

clean: ## remove everything that the targets create
	rm -rf $(VENV) .cache .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis dist site
