# make demo   the main job, embedded, no Java: generate trades, register hundreds of windows, look answers up
# make test   everything the tests need, then the tests; by three processes, as those of Spark wait more than they work
# make check  before a commit: lint, types, and the quick ones among the tests
# make fuzz   everything driven at random, for ten minutes: make fuzz MINUTES=60 JOBS=4 ONLY=engine,filters
# make bench  the tables and figures of docs/benchmarks.md

VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
MINUTES ?= 10
JOBS ?= 2
WORKERS ?= 3

# The tests that say most for the time they take: every way in, none on Spark, few random examples.
QUICK := tests/sql/test_statements.py tests/test_engine.py tests/test_engine_events.py tests/test_engine_lateness.py \
	tests/test_evaluate_tables.py tests/test_having.py tests/test_snapshot.py tests/test_emitted.py \
	tests/test_public_names.py tests/test_progress.py tests/test_siblings.py tests/test_cli_mistakes.py \
	tests/frames/test_specs.py tests/frames/test_detect.py tests/kernels/test_edges.py tests/kernels/test_hashing.py

.PHONY: demo test check java lint fuzz bench clean

demo: $(VENV)/.demo
	@$(BIN)/swag demo

test: java $(VENV)/.test lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

check: $(VENV)/.test lint
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n auto --dist loadfile $(QUICK)

java:
	@[ -x "$${JAVA_HOME:-/}/bin/java" ] || command -v java >/dev/null || \
		{ echo "the tests run Spark, which needs Java 17 or newer: apt-get install openjdk-17-jre-headless, or set JAVA_HOME"; exit 1; }

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --jobs $(JOBS) $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))

bench: $(VENV)/.bench
	$(BIN)/python -m bench all

$(BIN)/python:
	@echo "creating $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit("swag needs Python 3.11 or newer; this is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "installing swag ..."
	@$(BIN)/python -m pip install --quiet -e .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@echo "installing swag and what its tests need ..."
	@$(BIN)/python -m pip install --quiet -e ".[test]"
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	@echo "installing swag and its peers ..."
	@$(BIN)/python -m pip install --quiet -e ".[bench]"
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
