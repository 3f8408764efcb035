# A newcomer needs two lines: `make setup` and `make demo`. The other targets set up by themselves when needed.
SHELL := /bin/bash
VENV := .venv
# Makes the environment; without one, the newest that is here.
PYTHON :=
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
LOCK := requirements-dev.lock
# Tests of one file stay together, since they share a Spark. Two such processes keep two cores busy.
SIDE_BY_SIDE := -n 2 --dist loadfile --no-loadscope-reorder
# Spark takes the Java it is told of, which need not be the one on PATH.
WITH_JAVA := JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-quick test-live test-long test-chaos test-console test-mutants lint bench console reference docs dist lock clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## Make .venv with everything towpath needs, see to a Java 17 or newer, and make Spark start faster
	@home="$$(scripts/java.sh)" && export JAVA_HOME="$$home" && \
		{ $(BIN)/towpath prepare --if-missing >/dev/null || echo "setup: Spark starts slower, all else works"; } && echo "ready: $$($(BIN)/python -V) in $(VENV), Java in $$home. Next: make demo"

# The lock only constrains, so that another Python version may need other packages than the one it was made with.
$(INSTALLED): pyproject.toml $(LOCK)
	@scripts/venv.sh $(VENV) $(PYTHON)
	@echo "installing towpath and its packages into $(VENV) (the first time about 600 MB, a few minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) --editable '.[dev]'
	@touch $@

demo: setup ## Run towpath on a generated market and check its answers
	@$(WITH_JAVA) $(BIN)/towpath demo

test: setup ## Run the tests, without those that need several processes or take long
	@$(WITH_JAVA) $(BIN)/python -m pytest $(SIDE_BY_SIDE) --durations=20 -m "not live and not long and not chaos and not console"

# What is simulated, measured or tried in every order takes long and depends on no version of Python: `make test` has it.
LABORATORY := lab placement planners policies problems

test-quick: $(INSTALLED) ## Run the tests that start no Spark, also with another Python: VENV=.venv-3.13 PYTHON=python3.13
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not spark and not live and not long and not chaos and not console" -p no:cacheprovider \
		$(LABORATORY:%=--ignore=tests/%) --ignore=tests/control/test_fence_model.py

test-live: setup ## Run the tests with Spark Connect endpoints, Kafka and the service, and others that take long
	@$(WITH_JAVA) $(BIN)/python -m pytest $(SIDE_BY_SIDE) --durations=20 -m "live and not long"

test-chaos: setup ## Run jobs while nodes and controllers are killed, paused and starved (TOWPATH_CHAOS=200 schedules)
	@$(WITH_JAVA) $(BIN)/python -m pytest -m chaos --timeout=600

# Playwright and Schemathesis are not among what `make setup` installs: only these tests need them.
test-console: setup ## Run the tests of the web console in a browser; installs Playwright, Schemathesis and Chromium. Pictures: build/console
	@scripts/console.sh packages
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) --editable '.[browser]'
	@chromium="$$(scripts/chromium.sh)" && export TOWPATH_CHROMIUM="$$chromium" && \
		$(WITH_JAVA) $(BIN)/python -m pytest -m console --durations=10

test-long: setup ## Run the long tests only
	@$(WITH_JAVA) $(BIN)/python -m pytest -m long --timeout=7200

test-mutants: setup ## Make deliberate mistakes, one at a time, and see that the tests notice each (docs/design/mutants.md)
	@$(WITH_JAVA) $(BIN)/python scripts/mutants.py $(MUTANTS)

lint: $(INSTALLED) ## Check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: setup ## Measure what sharing brings
	@$(WITH_JAVA) $(BIN)/towpath bench sharing

console: ## Build the pages of the web console into the package, from console/ (needs Node.js; users do not)
	@scripts/console.sh build

lock: ## Pin the newest packages that pyproject.toml allows in requirements-dev.lock
	@scripts/lock.sh $(LOCK)

reference: $(INSTALLED) ## Write the reference of the job file and its JSON Schema, which are made of the settings
	@$(BIN)/python scripts/reference.py

docs: $(INSTALLED) ## Build the pages of the guide into build/site; nothing is fetched, neither now nor when they are read
	@$(BIN)/mkdocs build --strict --quiet --site-dir build/site && echo "build/site/index.html"

dist: ## Build the wheel and the source distribution into dist/, install them into empty environments, and try them
	@scripts/dist.sh build $(or $(PYTHON),python3)
	@$(WITH_JAVA) scripts/dist.sh check $(or $(PYTHON),python3)

clean: ## Remove caches and build products (.venv stays; delete it to start afresh)
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf spark-warehouse metastore_db derby.log towpath.log
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +
