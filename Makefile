# The README's commands. Everything is installed in .venv, in the tested versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Newer pips show what a build back end warns of: a screen for each package, of nothing one can mend.
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip --disable-pip-version-check --no-input
# Compiling all modules, one by one, takes pip half a minute: Python does so with those it imports.
INSTALL := $(PIP) install --quiet --no-compile -c constraints.txt
# uv takes a tenth of pip's time. It does not read what pip is set to: where that is another index, or
# uv finds something nowhere, pip installs, and says what is wrong.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt
HAS_UV := ! $(PIP) config list | grep '[.]index-url' >/dev/null && $(INSTALL) uv
install_all = { $(HAS_UV) && $(UV) $(1); } 2>/dev/null || $(INSTALL) $(1)
# The packages beside, as one edits them.
WINGS := $(patsubst %/pyproject.toml,-e ./%,$(wildcard packages/*/pyproject.toml))

# With `core`, these are all that `test` runs.
BESIDE = packages $(shell grep -lE 'graphrag_(server|evaluation|cluster)|mark\.beside|"evaluations?"' tests/test_*.py)

.DEFAULT_GOAL := help
.PHONY: help install dev demo test dear core coverage nightly containers lint types docs ui bench clean
# Workers of the tests, and what they start, would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## Say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo "Python 3.11, 3.12 or 3.13 is needed; name one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "Cannot make a virtual environment (Debian: apt install python3-venv)"; exit 1; }

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt $(wildcard packages/*/pyproject.toml)
	@echo "Installing into $(VENV) (half a minute, or two by pip)"
	@$(call install_all,-e '.[marts]' -e '.[ui]' -e ./packages/evaluation)
	@touch $@

# It has all that .installed has: to find out twice what goes together takes longer.
$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt $(wildcard packages/*/pyproject.toml)
	@echo "Installing into $(VENV) (half a minute, or two by pip)"
	@$(call install_all,-e '.[dev]' $(WINGS))
	@# Workers of the tests start together: each would compile the same modules.
	@PYTHONPATH=tests $(BIN)/python -c 'import preloaded'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-nightly: $(VENV)/.installed-dev
	@$(call install_all,-e '.[nightly]' $(WINGS))
	@touch $@

install: $(VENV)/.installed ## Install into .venv

dev: $(VENV)/.installed-dev ## Install, with the tools for development

demo: install ## Index the sample corpus and answer two questions
	@$(BIN)/python -m graphrag_pipeline.cli.demo

test: dev ## Run the tests (or TESTS=...), but for the dearest (DEAR=too: those, and all of TESTS)
ifdef DEAR
	@DEAR_TOO="$(TESTS:beside=$(BESIDE))" $(BIN)/python -m pytest -n auto --dist worksteal -m 'dear and not nightly'
else
	@$(BIN)/python -m pytest $(TESTS:beside=$(BESIDE)) -n auto --dist worksteal -m 'not nightly and not dear'
endif

dear: ## Run the tests that take most time
	@$(MAKE) --no-print-directory test DEAR=too

core: dev ## Run the core's own tests with none of the packages beside installed
	@$(PIP) uninstall --quiet --yes $(patsubst packages/%/pyproject.toml,graphrag-pipeline-%,$(wildcard packages/*/pyproject.toml))
	@$(BIN)/python -m pytest tests -n auto --dist worksteal -m 'not nightly and not dear'; status=$$?; \
		$(INSTALL) --no-deps --no-build-isolation $(WINGS) && exit $$status

coverage: dev ## Run the tests (or TESTS=...) and report what they reach in build/coverage
	@$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=html --cov-report=term:skip-covered $(TESTS)
	@echo "Open build/coverage/index.html"

nightly: $(VENV)/.installed-nightly ## Run the tests with every kill step and many more examples
	@HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -n auto --dist worksteal -m ""

containers: dev ## Run the image and both Compose files in a container daemon of their own (root)
	@$(BIN)/python -m pytest packages/cluster/tests/test_containers.py packages/cluster/tests/test_container_cluster.py -m nightly -rs

lint: dev ## Check style, and that imports run one way
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache

types: dev ## Check types
	@$(BIN)/pyright

docs: dev ## Write the reference pages and build the site in build/docs
	@$(BIN)/python -m docs.generate
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open build/docs/index.html"

ui: install ## Start Dagster's UI on http://127.0.0.1:3000
	@$(BIN)/graphrag-pipeline ui

bench: dev ## Measure speed, memory and quality
	@$(BIN)/python -m benchmarks

clean: ## Remove the virtual environment and caches (not your index)
	@rm -rf $(VENV) .pytest_cache .ruff_cache build dist *.egg-info
