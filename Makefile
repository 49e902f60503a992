# The only set-up on a fresh machine: `make run` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
UV_VERSION := 0.13.9
UV := $(BIN)/uv --quiet
# On a terminal cargo shows how far it is.
CARGO_QUIET := $(shell test -t 2 || echo --quiet)
export VIRTUAL_ENV := $(abspath $(VENV))
export PYO3_PYTHON := $(abspath $(BIN)/python)
export CARGO_TERM_COLOR ?= auto
# Every command starts a Python: what it imports is compiled once, not at each start.
export UV_COMPILE_BYTECODE := 1
export PYTHONDONTWRITEBYTECODE :=
# Property tests meet the same cases on every run; set another number to meet others.
export PROPTEST_RNG_SEED ?= 1995

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
BUILD := build

.PHONY: help run test packages bench fuzz torture suites wheel accuracy accuracy-crowded accuracy-strangers accuracy-hosts intervals docs fmt check lint test-rust test-python lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(BUILD)/core.stamp ## measure this host, fit, predict, run, compare: ends in a report
	@$(BIN)/wiretwin tour

test: packages check test-rust test-python ## everything that CI runs
	@bash requirements/debian.sh report

packages: ## what the tests need of Debian, where root may install it
	@bash requirements/debian.sh install

check: lint ## formatting, lints, types

lint: $(BUILD)/dev.stamp $(BUILD)/core.stamp
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/python docs/prose.py

test-rust: $(BUILD)/venv.stamp ## cargo test over the workspace
	cargo test --quiet --workspace --locked

test-python: $(BUILD)/dev.stamp $(BUILD)/core.stamp ## pytest: in two processes, what failed there by itself, then what wants a quiet machine
	$(BIN)/pytest -q -n 2 --dist loadgroup -m 'not alone' || $(BIN)/python tests/by_itself.py
	$(BIN)/pytest -q -m alone

fmt: $(BUILD)/dev.stamp ## format everything
	cargo fmt --all
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .

docs: $(BUILD)/dev.stamp $(BUILD)/core.stamp ## the documentation site, warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

wheel: $(BUILD)/dev.stamp $(BUILD)/core.stamp ## a wheel for any Python from 3.11 on, in WHEELS (dist)
	@$(BIN)/maturin build --quiet --release --locked --interpreter $(BIN)/python --out $(or $(WHEELS),dist)

bench: $(BUILD)/dev.stamp $(BUILD)/core.stamp ## speed of our own code, as ratios against a reference in the same run
	$(BIN)/python benches/run.py

fuzz: $(BUILD)/venv.stamp ## every parser in Rust under libFuzzer, FUZZ_SECONDS (20) each
	@$(BIN)/python fuzz/run.py --seconds $(or $(FUZZ_SECONDS),20)

torture: $(BUILD)/dev.stamp $(BUILD)/core.stamp ## every verb ended at TORTURE (20) points of its run by signals in turn; goes on where it was ended
	@$(BIN)/python tests/torture/run.py --times $(or $(TORTURE),20)

suites: $(BUILD)/dev.stamp $(BUILD)/core.stamp ## public suites of MPI programs over what is offered here, OSU=, IMB= and MPICH=FOLDER add theirs; goes on where it was ended
	@$(BIN)/python tests/suites/run.py $(if $(OSU),--osu $(OSU)) $(if $(IMB),--imb $(IMB)) $(if $(MPICH),--mpich $(MPICH))

accuracy: $(BUILD)/core.stamp ## predicted against actual, five programs at two sizes
	$(BIN)/python benches/accuracy.py

accuracy-crowded: $(BUILD)/core.stamp ## exchanges of 2, 3, 4 and 8 ranks on the cores there are, goes on where it stopped
	$(BIN)/python benches/accuracy_crowded.py --out results/crowded

accuracy-strangers: $(BUILD)/core.stamp ## public programs, from SCRIPTS=FOLDER or PROGRAMS=FOLDER, goes on where it stopped
	$(BIN)/python benches/accuracy_strangers.py $(if $(PROGRAMS),--programs $(PROGRAMS),--scripts $(SCRIPTS)) --out results/crowded

accuracy-hosts: $(BUILD)/core.stamp ## predicted against actual, four programs on four hosts, over sockets and libraries
	$(BIN)/python benches/accuracy_hosts.py

intervals: $(BUILD)/core.stamp ## how far the choices of the papers move their values; goes on where it was ended
	$(BIN)/python -m wiretwin.papers.intervals --folder $(BUILD)/intervals

lock: $(BUILD)/venv.stamp ## refresh the pinned dependencies
	$(UV) pip compile pyproject.toml --extra report --generate-hashes --no-emit-index-url --no-header --python-version 3.11 -o requirements/runtime.txt
	$(UV) pip compile --group dev --group docs -c requirements/runtime.txt --generate-hashes --no-emit-index-url --no-header --python-version 3.11 -o requirements/dev.txt
	cargo update

clean: ## remove what was built
	rm -rf $(VENV) $(BUILD) target docs/_build python/wiretwin/_core*.so python/wiretwin/fabric python/wiretwin/vipl/libvipl.so.1

$(BUILD)/venv.stamp:
	@mkdir -p $(BUILD)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

# pip and cargo work side by side. The core is not among what cargo builds here: maturin compiles and links it once.
$(BUILD)/runtime.stamp: requirements/runtime.txt $(BUILD)/venv.stamp
	@echo "1 of 2: installing pinned packages, building the libraries that MPI loads (1 to 3 minutes)"
	@cargo build $(CARGO_QUIET) --release --locked -p wiretwin-provider -p wiretwin-vipl --features wiretwin-vipl/versions & cargo_pid=$$!; \
	  $(UV) pip install --require-hashes -r requirements/runtime.txt; \
	  wait $$cargo_pid
	@touch $@

$(BUILD)/core.stamp: $(BUILD)/runtime.stamp pyproject.toml $(RUST_SOURCES)
	@echo "2 of 2: building the core (2 to 5 minutes)"
	@cargo build $(CARGO_QUIET) --release --locked -p wiretwin-provider -p wiretwin-vipl --features wiretwin-vipl/versions
	@install -D target/release/libwiretwin_fi.so python/wiretwin/fabric/libwiretwin-fi.so
	@install --strip target/release/libvipl.so python/wiretwin/vipl/libvipl.so.1
	@$(UV) pip install "$$(grep -oE '^maturin==[^ \\]+' requirements/dev.txt)"
	@$(UV) pip install --no-deps --no-build-isolation --config-settings build-args=--locked --editable .
	@$(BIN)/python -m compileall -q python/wiretwin
	@touch $@

$(BUILD)/dev.stamp: requirements/dev.txt $(BUILD)/runtime.stamp
	@$(UV) pip install --require-hashes -r requirements/dev.txt
	@touch $@
