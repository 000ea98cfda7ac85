# Each target makes its own virtual environment first: python3 (3.10 or newer) and make are all it takes.
# PYTHON=python3.12 chooses another interpreter.
PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
BUILT := pyproject.toml setup.py $(wildcard src/ringfence/kernels/*.c)
PIP := -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check bench conformance doctor-suite clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## two million real HalfCheetah steps through a full ring, and the plot of the memory: demo.png
	$(VENV)/bin/ringfence soak HalfCheetah-v5 --steps 2_000_000 --capacity 1_000_000 --plot demo.png

test: check ## all that CI runs: check, then the tests, then those of the loops again without the compiled ones
	$(VENV)/bin/python -m pytest
	RINGFENCE_PURE=1 $(VENV)/bin/python -m pytest --quiet tests/kernels tests/model tests/view

check: $(VENV)/.test ## lint, format, types, layers, sizes, exports, changelog fragments
	$(VENV)/bin/python -m ruff check
	$(VENV)/bin/python -m ruff format --check
	$(VENV)/bin/python -m mypy
	$(VENV)/bin/lint-imports --no-logo
	$(VENV)/bin/python ci/sizes.py src ci tests benchmarks studies
	$(VENV)/bin/python ci/exports.py
	$(VENV)/bin/python ci/fragments.py

bench: $(BENCH)/.bench ## our figures beside those of other libraries, as ratios
	$(BENCH)/bin/python -m benchmarks

conformance: $(BENCH)/.bench ## which rules of behaviour we and other libraries keep
	$(BENCH)/bin/python -m benchmarks.conformance

doctor-suite: $(BENCH)/.bench ## thirty broken training scripts and their repaired twins, watched by the doctor (10 minutes)
	$(BENCH)/bin/python -m tests.doctor.suite --write docs/doctor-suite.md

clean: ## remove the environments and what the tools left
	rm -rf $(VENV) $(BENCH) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache src/*.egg-info

# An environment's stamps tell make what it holds; what changes how we are built or what is pinned installs again.
$(VENV)/.demo: $(BUILT) constraints.txt | $(VENV)/.made
	$(VENV)/bin/python $(PIP) --editable '.[mujoco,report]'
	@touch $@

$(VENV)/.test: $(BUILT) constraints.txt | $(VENV)/.made
	$(VENV)/bin/python $(PIP) --editable '.[test,mujoco,atari,report,torch,minari]'
	@touch $@

$(BENCH)/.bench: $(BUILT) benchmarks/requirements.txt | $(BENCH)/.made
	$(BENCH)/bin/python -m pip --disable-pip-version-check install --quiet --editable . --requirement benchmarks/requirements.txt
	@touch $@

%/.made:
	@command -v $(PYTHON) > /dev/null || { echo "ringfence needs python3 (3.10 or newer); '$(PYTHON)' was not found"; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	    sys.exit(0 if v >= (3, 10) else "ringfence needs Python 3.10 or newer; $(PYTHON) is %d.%d. Try: make PYTHON=python3.11" % v[:2])'
	$(PYTHON) -m venv $*
	@touch $@
