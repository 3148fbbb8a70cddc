.PHONY: help setup lock
.DEFAULT_GOAL := help
BIN := .venv/bin
PYTHON ?= python3
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
  --no-emit-index-url --no-emit-find-links --python-version 3.11

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: .venv/.done ## make .venv with everything pinned

.venv/.done: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep --max-count=1 --only-matching '^uv==[^ ]*' requirements/dev.txt)"
	$(BIN)/uv pip sync --quiet --require-hashes requirements/dev.txt
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

lock: ## pin every dependency with hashes anew
	$(COMPILE) pyproject.toml --all-extras --output-file requirements/run.txt
	$(COMPILE) pyproject.toml --all-extras --group dev --constraint requirements/run.txt --output-file requirements/dev.txt
