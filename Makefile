# `make grade` and `make test` work in a fresh clone: both set up .venv first.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
OTHER = build/torch-$(VERSION)

.DEFAULT_GOAL := help
.PHONY: help setup grade test quick audit audit-machines audit-torch trained operators bench soak dist docs lint types format doctor clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(READY) ## build .venv and install the kit with its development tools

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 …"; exit 1; }
	@echo "setting up $(VENV) (once; torch is a large download)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

grade: $(READY) ## grade the sample submissions, and print the gradebook
	@$(BIN)/grader grade tests/submissions --out grades

# A file's tests share what takes long to make, so one process runs all of them. One process more
# than there are cores: a test that waits for a time limit leaves its core to another.
test: $(READY) ## run all tests of the kit
	@$(BIN)/pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist loadfile --no-loadscope-reorder

quick: $(READY) ## lint, types and the tests of rooms that changed, in a minute; SINCE=COMMIT
	@$(BIN)/python -m tests.tools.quick $(SINCE)

audit: $(READY) ## prove the course's tests: on mistakes, right answers and mutants
	@$(BIN)/grader audit

audit-machines: $(READY) ## the same with less of this processor, compared; EXERCISES="…" for a few
	@$(BIN)/grader audit --machines $(EXERCISES)

# Without torch's index for CPU in PIP_EXTRA_INDEX_URL, torch brings CUDA.
audit-torch: ## bans, samples and audit with another torch, VERSION=2.14.1; EXERCISES="…" for a few
	@test -n "$(VERSION)" || { echo "name a version: make audit-torch VERSION=2.14.1"; exit 2; }
	@$(PYTHON) -m venv $(OTHER)
	@grep -v '^torch==' constraints.txt > $(OTHER)/constraints.txt
	@$(OTHER)/bin/pip install --quiet --disable-pip-version-check -c $(OTHER)/constraints.txt \
	  "torch==$(VERSION)" -e ".[instructor]"
	@$(OTHER)/bin/pytest -q -k is_forbidden tests/test_operators.py
	@$(OTHER)/bin/grader grade tests/submissions --out $(OTHER)/grades
	@$(OTHER)/bin/grader audit $(EXERCISES)

trained: $(READY) ## train the weights that hidden tests give to a GPT: solutions/trained
	@$(BIN)/python -m tests.tools.trained

operators: $(READY) ## look for operators of torch that the counter or a ban misses
	@$(BIN)/python -m tests.tools.operators

bench: $(READY) ## how fast, beside a cold pytest, otter and plain calls: a table, and build/bench.json
	@$(BIN)/python -m tests.benchmarks

soak: $(READY) ## disturb gradings at random moments for an hour, and compare what comes out
	@$(BIN)/python -m tests.benchmarks.soak

# The carried course is in the package while it is built, and not in the way of lint and tests after.
dist: $(READY) ## record the course, and build the packages that carry it: dist/
	@rm -rf dist
	@rm -rf build/student grader/bundle
	@echo "recording the course (some minutes, if it has changed)"
	@$(BIN)/grader release student --to build/student
	@mkdir grader/bundle
	@cd build/student && cp -R exercises notebooks README.md AGENTS.md .gitignore ../../grader/bundle/
	@$(BIN)/hatchling build; status=$$?; rm -rf grader/bundle; exit $$status

docs: $(READY) ## build the documentation, and check its links: build/docs/index.html
	@rm -rf build/docs
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky --fresh-env \
	  --doctree-dir build/doctrees docs build/docs
	@echo "the documentation: build/docs/index.html"

lint: $(READY) ## ruff: format and lint; codespell
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/codespell .

types: $(READY) ## mypy, strict
	@$(BIN)/mypy

format: $(READY) ## let ruff rewrite what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

doctor: $(READY) ## versions and isolation layers on this machine
	@$(BIN)/grader doctor

clean: ## remove what was built
	rm -rf $(VENV) build dist grades .mypy_cache .ruff_cache .pytest_cache .hypothesis
