# Two commands do everything on a fresh machine with Python 3.11 or newer:
#   make demo          shows `kvlint check` on the examples
#   make test          runs the suite, the linters, the type checker, and kvlint on itself
#   make test-engines  runs the tests on released engines, which it downloads
#   make ecosystem     shows what a change does to the findings in released engines, too
# Environments are rebuilt only when pyproject.toml changes (stamp files in .venv).

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; \
	done)
BIN := .venv/bin
APART := $(BIN)/python -m pip install --quiet --no-deps
# Where unpacked wheels are kept, and the environment in which engines run.
export KVLINT_ENGINES_CACHE ?= $(HOME)/.cache/kvlint-engines

.PHONY: demo test test-engines ecosystem ecosystem-update format clean
.DELETE_ON_ERROR:

demo: .venv/.installed
	@# Findings exist in the examples, that is their purpose: only exit 2 is a failure here.
	$(BIN)/kvlint check examples || [ $$? -eq 1 ]

test: .venv/.installed-dev
	$(BIN)/python -m pytest
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy -p kvlint
	$(BIN)/kvlint check kvlint rules runtime_checks

test-engines: .venv/.installed-dev
	$(BIN)/python -m pytest -m engines -rs tests/engines

ecosystem: .venv/.installed
	$(BIN)/python -m benchmarks.ecosystem

ecosystem-update: .venv/.installed
	$(BIN)/python -m benchmarks.ecosystem --write

format: .venv/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf .venv build dist kvlint_geometry.egg-info

.venv/.created:
	@[ -n "$(PYTHON)" ] || { echo "kvlint needs Python 3.11 or newer; none found" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.installed: .venv/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# Dependency groups need pip 25.1, newer than what Python 3.11 brings along.
.venv/.installed-dev: .venv/.installed
	$(BIN)/python -m pip install --quiet "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[runtime,test]" --group dev
	@$(APART) --group nixl \
		|| echo "no wheel of NIXL for this platform or index: tests that need it will skip" >&2
	@# A wheel at hand first (pip's find-links); never the index, which has torch for CUDA.
	@$(APART) --no-index --group torch 2>/dev/null \
		|| $(APART) --index-url https://download.pytorch.org/whl/cpu --retries 1 --timeout 15 \
			--group torch 2>/dev/null \
		|| echo "no CPU wheel of torch: tests that need it will skip" >&2
	@$(APART) --group triton 2>/dev/null \
		|| echo "no wheel of triton for this platform or index: tests that need it will skip" >&2
	$(BIN)/python -m pip install --quiet --group torch-imports
	@touch $@
