# Needs python3 (3.11 or newer), make and git; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests and linting share one environment; the stamp is renewed when pyproject.toml changes.
STAMP := $(VENV)/.installed
JOBS ?= 2
# A file of tests stays in one process, so that its models are fitted once.
SPREAD = -n $(JOBS) --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help install demo test test-fast test-statistical bench bench-peers experiments \
    experiments-quick stress docs gallery pictures dist lint lint-js format clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /:/' | \
	    awk -F: '{ printf "  make %-18s %s\n", $$1, $$2 }'

install: $(STAMP)  ## create .venv and install the package with all it needs for development

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "mixedgm needs Python 3.11 or newer; try: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing mixedgm and its dependencies into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[test,lint]'
	@touch $@

demo: $(STAMP)  ## fit the bundled survey data, print the edges, write pictures
	$(BIN)/mixedgm demo

test: $(STAMP)  ## run the whole test suite, doctests included
	$(BIN)/python -m pytest $(SPREAD) $(ARGS)

test-fast: $(STAMP)  ## run the tests that are neither slow nor statistical
	$(BIN)/python -m pytest $(SPREAD) -m "not slow and not statistical" $(ARGS)

test-statistical: $(STAMP)  ## run the tests that compare with known truth by random numbers
	$(BIN)/python -m pytest $(SPREAD) -m statistical $(ARGS)

bench: $(STAMP)  ## measure against the goals (about 20 minutes); ARGS=--quick
	$(BIN)/python -m benchmarks $(ARGS)

bench-peers: $(STAMP)  ## make the environments of the peers that need one
	$(BIN)/python benchmarks/peers/adelie_env.py
	$(BIN)/python benchmarks/peers/field_env.py

experiments: $(STAMP)  ## figures of the paper into docs/experiments; DATA=folder of atus_wage.parquet
	$(BIN)/python -m experiments $(if $(DATA),--data $(DATA)) $(ARGS)

experiments-quick: $(STAMP)  ## the same with fewer trials (minutes), into docs/experiments/quick
	$(BIN)/python -m experiments --quick $(if $(DATA),--data $(DATA)) $(ARGS)

stress: $(STAMP)  ## hostile input by the thousand (hours; goes on where it was left); ARGS=model-files
	$(BIN)/python -m stress --jobs $(JOBS) $(ARGS)

docs: $(VENV)/.docs  ## build the site into build/site, from nothing, warnings as errors
	$(BIN)/python docs/build.py $(ARGS)

gallery: $(STAMP)  ## pictures of nine real tables into OUT; DATA=folder of adult and Ames (minutes)
	$(if $(DATA),DATA=$(DATA)) $(BIN)/python -m docs.images.make_networks $(or $(OUT),build/gallery) $(ARGS)

pictures: $(STAMP)  ## pictures of the documentation: views, and first screens of the report
	$(BIN)/python docs/images/make.py
	$(BIN)/python -m docs.images.make_report

dist: $(VENV)/.dist  ## build wheel and sdist, try them at the lowest and newest dependencies (minutes)
	$(BIN)/python -m release $(ARGS)

# What only the site, or only a release, needs.
$(VENV)/.docs $(VENV)/.dist: $(VENV)/.%: $(STAMP)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[$*]'
	@touch $@

lint: $(STAMP)  ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-js:  ## check formatting and types of the report's JavaScript (needs npm)
	@if command -v npm >/dev/null; then \
	    npm ci --prefix tools/js --silent --no-fund --no-audit && npm run --prefix tools/js --silent check; \
	else \
	    echo "skipped: the checks of the report's JavaScript need npm"; \
	fi

format: $(STAMP)  ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove the environment, caches and what the demo wrote
	rm -rf $(VENV) build dist mixedgm-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis tools/js/node_modules
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
