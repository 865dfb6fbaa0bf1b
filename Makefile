# Every target makes what it needs first; `make` alone lists them.
PYTHON ?= $(shell sh requirements/python.sh)
PY := .venv/bin/python
ARGS ?=
MIGRATIONS := $(wildcard */migrations/*.py)
CATALOGUE_SKIPS := -i ".venv*" -i var -i tests -i bench -i "demo/files"

.DEFAULT_GOAL := help
.PHONY: help setup demo run test test-latest mutants fuzz lint catalogue lock bench bench-console clean python

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: var/.migrated ## Make the environment, the secrets and the database
	@echo 'setup: ready; "make demo" or "make run" starts the product'

demo: var/.migrated ## Start console, API and worker with example data (SQLite unless DATABASE_URL says otherwise)
	@exec $(PY) -m config.serve --demo

run: var/.migrated ## Start console, API and worker
	@exec $(PY) -m config.serve

test: .venv/.dev ## Run the tests on SQLite and PostgreSQL (ARGS="-k claim", ARGS="--on sqlite")
	@$(PY) tests/run.py $(ARGS)

test-latest: ## The same on the newest Django, where a Python >= 3.12 is found
	@sh tests/latest.sh $(ARGS)

mutants: .venv/.dev ## Break every named predicate of the guarded statements and print which the tests notice
	@$(PY) -m tests.matrix.score $(ARGS)

fuzz: .venv/.dev ## Fuzz the API for longer than the tests do, on both databases (ARGS="--on sqlite")
	@$(PY) -m tests.fuzz $(ARGS)

lint: .venv/.dev var/env ## Check style, types, migrations and the deployment settings
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(PY) manage.py makemigrations --check --dry-run
	@HTTPS_ONLY=1 HSTS_SUBDOMAINS=1 ALLOWED_HOSTS=interlock.example DEBUG=0 \
		$(PY) manage.py check --deploy --fail-level WARNING

catalogue: .venv/.runtime var/env ## Take new messages into locale/ and compile them (needs gettext)
	@$(PY) manage.py makemessages -l zh_Hans --no-obsolete --add-location file $(CATALOGUE_SKIPS)
	@$(PY) manage.py compilemessages -l zh_Hans

lock: .venv/.dev ## Resolve the dependencies anew (ARGS=--upgrade for newer versions)
	@$(PY) requirements/lock.py $(ARGS)

bench: .venv/.dev var/.migrated ## Measure (see docs/benchmarks.md)
	@$(PY) -m bench $(ARGS)

bench-console: .venv/.dev ## Time every page of the console over a million jobs (see docs/benchmarks.md)
	@$(PY) -m bench.console $(ARGS)

clean: ## Remove all that was made, the demonstration's database and secrets included
	rm -rf .venv .venv-latest .venv-bench var .mypy_cache .pytest_cache .ruff_cache .hypothesis .schemathesis

# ── what they are made of ──
python:
	@command -v $(PYTHON) >/dev/null || { echo "setup: $(PYTHON) was not found; Python 3.11 or newer is needed."; exit 1; }

.venv/.runtime: requirements/runtime.txt requirements/uv.txt requirements/install.py | python
	@$(PYTHON) requirements/install.py runtime

.venv/.dev: requirements/dev.txt requirements/uv.txt requirements/install.py | python
	@$(PYTHON) requirements/install.py dev

var/env: | .venv/.runtime
	@$(PY) -m config.newenv

var/.migrated: .venv/.runtime var/env $(MIGRATIONS)
	@$(PY) -m config.prepare
	@touch $@
