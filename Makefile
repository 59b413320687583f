# Every target sets up .venv by itself; it needs only Python >= 3.11 and git.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
export PYTHON SCENARIOS RUNS SCENARIOS_UID
WORKERS ?= 4
# Most tests wait more than they compute: more workers than processors.
FLIPS ?= 100000
TRAJECTORIES ?= 100000

.PHONY: help setup clients demo test check lint types imports docs agents sessions scenarios bench results crash soak fuzz generate clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do printf '%-14s %s\n' "$$name" "$$what"; done

setup: ## make .venv with all that the other targets need
	@scripts/setup

clients: setup ## install the client programs that the network tests run inside (curl, git, Go, Java …)
	@scripts/need_clients

demo: setup ## see Interlock hold, refuse and prove, on a small example
	@$(BIN)/interlock demo

test: setup ## run the tests (without the slow ones)
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow" -rs

check: lint types imports docs ## check style, types, the order of the rooms, and the docs

lint: setup
	@$(BIN)/ruff check src spec tests scripts benchmarks
	@$(BIN)/ruff format --check src spec tests scripts benchmarks

types: setup
	@$(BIN)/mypy src spec tests benchmarks scripts/check_docs.py scripts/generate.py

imports: setup
	@$(BIN)/lint-imports --no-logo

docs: setup
	@$(BIN)/python scripts/check_docs.py

agents: setup ## run real agents under Interlock, against a scripted model (AGENTS="claude codex" for a part)
	@place=$$(scripts/need_agents $(AGENTS)) && $(BIN)/python -m tests.agents --place "$$place" --pairs $(or $(PAIRS),3) $(AGENTS)

sessions: setup ## record the terminal sessions of docs/sessions
	@scripts/record_session

scenarios: setup ## run the scenarios as root and as a user (SCENARIOS=FILE ONLY="A01 B0")
	@scripts/scenarios $(ONLY)

bench: setup ## measure against the bare command; writes build/bench.json
	@scripts/bench

results: setup ## write docs/results from benchmarks/results (MEASURE=1: measure them anew first)
	@$(if $(MEASURE),scripts/need_bench && scripts/measure_results &&) $(BIN)/interlock bench results benchmarks/results --to docs/results

crash: setup ## kill it at every step and see that it recovers
	@$(BIN)/pytest -n 2 tests/crash -rs

soak: setup ## run the slow tests, with new examples each time
	@INTERLOCK_SEARCH=1 $(BIN)/pytest -n 2 -m slow -rs

fuzz: setup ## flip FLIPS bits of sealed ledgers, then search TRAJECTORIES runs and answers of models for what spec and code see differently
	@$(BIN)/python -m tests.vectors.flip_fuzz --flips $(FLIPS)
	@$(BIN)/python -m tests.differential.many --trajectories $(TRAJECTORIES)
	@INTERLOCK_EXAMPLES=2000 $(BIN)/pytest -n $(WORKERS) tests/differential/test_sensitivity.py tests/differential/test_sensitive_leaves.py -rs
	@INTERLOCK_EXAMPLES=400 $(BIN)/pytest -n $(WORKERS) tests/property -rs
	@INTERLOCK_ANSWERS=$(TRAJECTORIES) $(BIN)/pytest tests/property/test_oracle_seeing_law.py -k fuzzed -rs
	@INTERLOCK_ANSWERS=$(TRAJECTORIES) $(BIN)/pytest tests/property/test_lens_audit_law.py -k fuzzed -rs

generate: setup ## write the files that are made from tables in the source
	@$(BIN)/python scripts/generate.py

clean: ## remove what the targets made, but for .venv
	@rm -rf build dist .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	@find src spec tests scripts benchmarks -name __pycache__ -prune -exec rm -rf {} +
