.PHONY: help setup lock run test test-all test-programs check agreement format lint types docs programs conformance fuzz fuzz-cel fuzz-cluster compare-files compare-memo compare-cluster bench bench-quick bench-rego bench-cel bench-kyverno bench-command-line bench-configurations bench-bounds bench-enforcement bench-cluster bench-decisions bench-telemetry bench-hostile bench-changes bench-audit bench-reports drill search-for-ways-in load soak soak-decisions bench-curves bench-mutation bench-exceptions bench-memo bench-projection bench-external-data bench-images fuzz-mutation flame results outdated
.PHONY: demo image release site test-browser screenshots coverage coverage-generator mutants simulate-worlds simulate-new new-examples
.DEFAULT_GOAL := help
# Where it is set, each worker would compile all tests again in each run.
export PYTHONDONTWRITEBYTECODE :=
BIN := .venv/bin
PYTHON ?= python3
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
  --no-emit-index-url --no-emit-find-links --python-version 3.11
PYTEST := $(BIN)/pytest
SOURCES := webhook tests loadtest
CONFORMANCE ?= $(or $(WADDLE_CONFORMANCE),../shared/conformance)

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: .venv/.done .venv-imports/.done ## make .venv with everything pinned (Python 3.11 or later)

.venv/.done: requirements/dev.txt pyproject.toml webhook/waddle/__init__.py # the last is copied there
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit(f"Python 3.11 or later is needed, not {v[0]}.{v[1]}: make PYTHON=/path/to/python3")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep --max-count=1 --only-matching '^uv==[^ ]*' requirements/dev.txt)"
	$(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes --python $(BIN)/python requirements/dev.txt
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --python $(BIN)/python --editable .
	touch $@

.venv-imports/.done: requirements/imports.txt .venv/.done
	test -x .venv-imports/bin/python || $(PYTHON) -m venv --without-pip .venv-imports
	$(BIN)/uv pip sync --quiet --require-hashes --python .venv-imports/bin/python requirements/imports.txt
	ln -sf ../../.venv-imports/bin/lint-imports $(BIN)/lint-imports
	touch $@

lock: ## pin every dependency with hashes anew
	$(COMPILE) pyproject.toml --all-extras --output-file requirements/run.txt
	$(COMPILE) pyproject.toml --all-extras --group dev --constraint requirements/run.txt --output-file requirements/dev.txt
	$(COMPILE) --group build --constraint requirements/dev.txt --output-file requirements/build.txt
	$(COMPILE) --group site --output-file requirements/site.txt
	$(COMPILE) --group sbom --output-file requirements/sbom.txt
	$(COMPILE) --group imports --output-file requirements/imports.txt
	$(COMPILE) --group load --output-file requirements/load.txt

ENGINE ?= docker
IMAGE ?= waddle:$(shell sed -n 's/^__version__.*"\(.*\)"/\1/p' webhook/__init__.py)
BUILD_FLAGS ?=
image: ## build the container image, and dist/sbom.cdx.json of it; ENGINE=podman IMAGE=registry.example/waddle:1 BUILD_FLAGS=
	$(ENGINE) build --build-arg COMMIT="$$(git rev-parse HEAD)" $(BUILD_FLAGS) --tag $(IMAGE) .
	mkdir -p dist
	$(ENGINE) run --rm --network=none --entrypoint cat $(IMAGE) /opt/waddle/sbom.cdx.json > dist/sbom.cdx.json

RELEASE ?= dist/release
release: setup .venv-sbom/.done ## cut the version of webhook/__init__.py: wheel, sdist, waddle.pyz, install.yaml, chart, checksums, SBOM, provenance, notes in dist/release, and the tag; REPOSITORY=https://… for the packages' links
	$(BIN)/python -m tests.release $(RELEASE) $(REPOSITORY)

.venv-sbom/.done: requirements/sbom.txt | .venv/.done
	test -x .venv-sbom/bin/python || $(PYTHON) -m venv --without-pip .venv-sbom
	$(BIN)/uv pip sync --quiet --require-hashes --python .venv-sbom/bin/python requirements/sbom.txt
	touch $@

PORT ?= 8443
HEALTH_PORT ?= 9090
METRICS_PORT ?= 8888
run: .venv/.done ## serve policies/ over HTTPS on 127.0.0.1; PORT=8443 HEALTH_PORT=9090 METRICS_PORT=8888
	@$(BIN)/waddle serve --policies policies --host 127.0.0.1 --port $(PORT) --health-addr 127.0.0.1:$(HEALTH_PORT) \
	  --prometheus-host 127.0.0.1 --prometheus-port $(METRICS_PORT) --shutdown-delay 0

CONSOLE_PORT ?= 8090
demo: .venv/.done ## a control plane, three replicas, traffic, a bad policy and the console, until Control-C; CONSOLE_PORT=8090
	@$(BIN)/python -m tests.programs testcluster
	@exec $(BIN)/waddle demo --port $(CONSOLE_PORT) --api-server "$$($(BIN)/python -c 'from tests.programs import build; print(build("testcluster"))')"

# Workers beside each other: with two for each core one computes while another waits for processes,
# an API server, leases (three kept two cores busy for 80 % of the first tier's time). Tests that
# share a server or a cluster go to one worker (tests/tiers.py).
WORKERS ?= 4
# By chance, and the same for the same tests: what fails by its order fails so again.
ORDER ?= $(shell printf '%d' "0x0$$(git rev-parse HEAD:tests 2>/dev/null | cut -c1-7)")
MEASURED := pytest --durations=25 --dist=loadgroup --no-loadscope-reorder --randomly-seed=$(ORDER) --numprocesses
TIER := $(BIN)/$(MEASURED)

test: setup .venv-load/.done ## every test that needs nothing but Python, about 5 minutes
	$(TIER) $(WORKERS) -m "not programs"

test-all: test test-programs ## those, and the tests against the real API server, OPA, Gatekeeper, Kafka and Helm

test-programs: setup .venv-load/.done ## the latter alone
	-$(BIN)/python -m tests.programs
	-$(BIN)/python -m tests.browser
	$(TIER) $(WORKERS) -m programs

test-browser: setup ## the console's pages in Chromium alone, installed by apt where it may be, 1 minute
	-$(BIN)/python -m tests.browser
	$(PYTEST) tests/behaviour/test_the_console_in_a_browser.py

screenshots: setup ## the pictures of the console in docs/, made in Chromium
	$(BIN)/python -m tests.screenshots

coverage: setup .venv-load/.done ## lines and branches that both tiers reach, of each package; fails below its floor
	$(BIN)/coverage erase
	-$(BIN)/python -m tests.programs
	$(BIN)/coverage run -m $(MEASURED) $(WORKERS) -m "not programs"
	$(BIN)/coverage run -m $(MEASURED) $(WORKERS) -m programs
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage json --quiet --ignore-errors # simulations run modules under names of their own
	$(BIN)/python -m tests.coverage_floors coverage.json

check: setup lint types docs agreement new-examples simulate-new ## formatting, lint, types, import contracts, the repository's own rules, agreement with OPA, new examples of properties, simulated worlds

WORLD ?= all
SEED ?= 0
simulate-worlds: setup ## play a simulated world step by step; SEED=7 WORLD=log
	$(BIN)/python -m tests.simulation $(WORLD) --seed $(SEED)

SIMULATE_SECONDS ?= 60
NEW_WORLD ?= all
simulate-new: setup ## play simulated worlds of new seeds for SIMULATE_SECONDS
	$(BIN)/python -m tests.simulation $(NEW_WORLD) --seconds $(SIMULATE_SECONDS) --first $$(date +%s)000

NEW_EXAMPLES ?= 500
new-examples: setup ## ask properties about NEW_EXAMPLES examples each that nobody has seen
	WADDLE_NEW_EXAMPLES=$(NEW_EXAMPLES) $(PYTEST) --numprocesses 2 -m "hypothesis and not programs" tests

agreement: setup ## a bounded search for differences to the real OPA
	$(PYTEST) tests/differential

format: setup ## format all code
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

lint: setup ## formatting, lint, import contracts and the prose of pages
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/python -m tests.prose

types: setup ## static types
	$(BIN)/mypy

docs: setup site ## the repository's own rules, tables in docs/ against the code, and the pages built strictly
	$(PYTEST) tests/test_repository.py tests/test_house.py tests/webhook/settings/test_settings.py

site: .venv-site/.done ## the documentation as pages that can be searched, in dist/site; every link checked
	.venv-site/bin/python -m tests.site dist/site

.venv-site/.done: requirements/site.txt | .venv/.done
	test -x .venv-site/bin/python || $(PYTHON) -m venv --without-pip .venv-site
	$(BIN)/uv pip sync --quiet --require-hashes --python .venv-site/bin/python requirements/site.txt
	touch $@

programs: setup ## build the programs that tests and benchmarks compare with; about 20 minutes the first time
	$(BIN)/python -m tests.programs

conformance: setup ## OPA's own cases and Gatekeeper's library, from CONFORMANCE
	$(BIN)/python -m tests.conformance.opa $(CONFORMANCE)/opa
	$(BIN)/waddle verify $(CONFORMANCE)/gatekeeper-library

bench: setup ## against Gatekeeper, over TLS, at most 30 minutes; results in loadtest/results/
	$(BIN)/python -m loadtest.bench

bench-quick: setup ## the same with fewer and shorter rounds, about 4 minutes
	$(BIN)/python -m loadtest.bench --quick

bench-curves: setup ## how cost grows, beside Gatekeeper; resumable, about an hour and a half; CURVES=--quick half of it
	$(BIN)/python -m loadtest.curves $(CURVES)

results: .venv/.done ## which results are older than the code that they measure
	$(BIN)/python -m loadtest.freshness

outdated: .venv/.done ## which oracles and dependencies have newer versions; exit code 3 without a network
	$(BIN)/python -m tests.outdated

flame: setup ## flame graphs of a replica under load and what made its slowest answers, in loadtest/results/
	$(BIN)/python -m loadtest.flame

coverage-generator: setup ## which lines and branches of the Rego generator nothing compared with OPA reaches, 2 minutes
	$(BIN)/python -m tests.differential.composition.reached

MUTANTS ?=
mutants: setup ## faults put into the Rego generator: which of them compositions find; 10 minutes; MUTANTS="--share 0.1"
	$(BIN)/python -m tests.differential.composition.mutants $(MUTANTS)

FUZZ_SECONDS ?= 600
fuzz: setup ## mutated policies, all compositions of literals (about an hour), then FUZZ_SECONDS of random questions, to our Rego engine and OPA
	WADDLE_MUTATIONS=20000 $(PYTEST) --timeout=0 tests/webhook/constraint/test_mutated_sources.py \
	  tests/webhook/constraint/test_hostile_sources.py
	$(BIN)/python -m tests.differential.composition
	$(BIN)/python -m tests.differential.search --seconds $(FUZZ_SECONDS)

fuzz-mutation: setup ## random mutators and ExpansionTemplates, to our code and Gatekeeper's module, for FUZZ_SECONDS
	$(BIN)/python -m tests.differential.mutators --seconds $(FUZZ_SECONDS)

fuzz-cel: setup ## random expressions, for FUZZ_SECONDS, to our CEL and to Kubernetes' own
	$(BIN)/python -m tests.differential.cel --seconds $(FUZZ_SECONDS)

FUZZ_ROUNDS ?= 300
COMPARED_REVIEWS ?= 60000
COMPARED_OBJECTS ?= 20000
COMPARED_SEED ?= $(shell date +%s)
FUZZ_SEED ?= $(shell date +%s)
fuzz-cluster: setup ## write random objects of every watched kind while replicas run and restart (FUZZ_ROUNDS, about an hour)
	WADDLE_FUZZ_ROUNDS=$(FUZZ_ROUNDS) WADDLE_FUZZ_SEED=$(FUZZ_SEED) $(PYTEST) --timeout=0 \
	  tests/system/test_whatever_is_written_replicas_follow.py -k random

compare-files: setup ## random objects, templates, suites, wrong types and YAML beside gator, OPA and conftest (COMPARED_OBJECTS, about 15 minutes; COMPARED_SEED)
	WADDLE_COMPARED_OBJECTS=$(COMPARED_OBJECTS) WADDLE_COMPARED_SEED=$(COMPARED_SEED) $(PYTEST) --timeout=0 \
	  tests/conformance/test_random_objects_equal_gator.py tests/differential/test_files_beside_gator.py \
	  tests/differential/test_templates_beside_gator.py tests/differential/test_suites_beside_gator.py \
	  tests/differential/test_yaml_beside_go.py

MEMO_REVIEWS ?= 1000000
MEMO_FIRST ?= $(shell date +%s)
compare-memo: setup ## random reviews with kept results and projected data beside none, MEMO_REVIEWS of worlds from MEMO_FIRST on, about 10 minutes
	$(BIN)/python -m tests.differential.memo --first $(MEMO_FIRST) --count $(MEMO_REVIEWS)

compare-cluster: setup ## random reviews to a replica and to Gatekeeper in one cluster (COMPARED_REVIEWS, about half an hour; COMPARED_SEED)
	WADDLE_COMPARED_REVIEWS=$(COMPARED_REVIEWS) WADDLE_COMPARED_SEED=$(COMPARED_SEED) $(PYTEST) --timeout=0 \
	  tests/system/test_reviews_equal_gatekeeper.py

EXTERNAL_DATA_REVIEWS ?= 2000
compare-external-data: setup ## random questions to a provider by a replica and by Gatekeeper in one cluster (EXTERNAL_DATA_REVIEWS, about 10 minutes; COMPARED_SEED)
	WADDLE_EXTERNAL_DATA_REVIEWS=$(EXTERNAL_DATA_REVIEWS) WADDLE_EXTERNAL_DATA_SEED=$(COMPARED_SEED) $(PYTEST) --timeout=0 \
	  tests/system/test_external_data_beside_gatekeeper.py

bench-rego: setup ## the Rego engine beside OPA's and Gatekeeper's driver, template by template
	$(BIN)/python -m loadtest.rego.bench $(CONFORMANCE)/gatekeeper-library

bench-cel: setup ## the CEL engine beside Kubernetes' validator, template by template, beside Kyverno's engine, and beside Rego
	$(BIN)/python -m loadtest.cel.bench $(CONFORMANCE)/gatekeeper-library --policies $(CONFORMANCE)/vap --kyverno $(CONFORMANCE)/kyverno --save
	$(MAKE) bench-kyverno

KYVERNO ?= --save
bench-kyverno: setup ## admission beside Kyverno's controller at a real API server, with 1 and 12 policies in CEL and of patterns, about 8 minutes; KYVERNO=--quick 3 minutes
	$(BIN)/python -m loadtest.kyverno $(KYVERNO)

bench-mutation: setup ## mutation beside Gatekeeper with 1, 20 and 100 mutators, and expansion, about 6 minutes
	$(BIN)/python -m loadtest.mutation --save

EXTERNAL_DATA ?= --save
bench-external-data: setup ## policies that ask a provider of 20 ms, beside Gatekeeper, about 22 minutes; EXTERNAL_DATA=--quick 2 minutes
	$(BIN)/python -m loadtest.external_data $(EXTERNAL_DATA)

EXCEPTIONS ?= --save
bench-exceptions: setup ## what 1,000 exceptions, and groups of constraints, add to a review's CPU, and how soon an expiry is in force on three replicas, 6 minutes; EXCEPTIONS=--quick 1 minute
	$(BIN)/python -m loadtest.exceptions $(EXCEPTIONS)
	$(BIN)/python -m loadtest.expiry $(EXCEPTIONS)

bench-memo: setup ## what keeping results saves a review's CPU on roll-outs, updates and a mix, and what it costs where nothing repeats, 5 minutes; MEMO=--quick 1 minute
	$(BIN)/python -m loadtest.memo $(or $(MEMO),--save)

bench-projection: setup ## what synced objects take in memory, as far as templates read them and whole, 15 minutes; PROJECTION=--quick 2 minutes
	$(BIN)/python -m loadtest.projection $(or $(PROJECTION),--save)

bench-images: setup ## CPU and memory of the provider for images, beside their goals, 1 minute
	$(BIN)/python -m loadtest.images

bench-command-line: setup ## CPU of `waddle` from start to end, beside gator, 1 minute
	$(BIN)/python -m loadtest.command_line $(CONFORMANCE)/gatekeeper-library

bench-configurations: setup ## `waddle conftest test` beside conftest: 1,000 files, 50 policies, 2 minutes
	$(BIN)/python -m loadtest.configurations

bench-bounds: setup ## what deadlines and budgets cost the Rego engine, 1 minute
	$(BIN)/python -m loadtest.rego.bounds $(CONFORMANCE)/gatekeeper-library

bench-enforcement: setup ## from a change of policy to its enforcement on three replicas, beside Gatekeeper, 8 minutes
	$(BIN)/python -m loadtest.enforcement --save

bench-cluster: setup ## starts and memory with 500 templates, 2,000 constraints and with 10,000 objects, beside Gatekeeper, about 25 minutes
	$(BIN)/python -m loadtest.cluster --save

drill: setup ## attacks on a running server, each with a bound that must hold; some minutes
	$(BIN)/python -m loadtest.drill

SEARCH_SECONDS ?= 600
SEARCH ?=
search-for-ways-in: setup ## try to get a violating object past three replicas for SEARCH_SECONDS; SEARCH=--unguarded finds one within a minute, SEARCH="--api-server Ignore" (or Fail) asks through a real API server
	$(BIN)/python -m loadtest.ways_in --seconds $(SEARCH_SECONDS) $(SEARCH)

bench-hostile: setup ## what hostile policies cost the other requests, about 8 minutes
	$(BIN)/python -m loadtest.hostile --save

CHANGES ?= --save
bench-changes: setup ## load while policies change 200 times a minute, beside Gatekeeper, about 15 minutes; CHANGES=--quick 2 minutes
	$(BIN)/python -m loadtest.changes $(CHANGES)

SCALE ?= --save
bench-scale: setup ## an audit of 100,000 Pods in 2,000 namespaces, and writes of 50 replicas, at a real API server, 12 minutes; SCALE=--quick 2 minutes
	$(BIN)/python -m loadtest.scale $(SCALE)

bench-decisions: setup ## what the decision log costs an admission, and what its sidecar takes
	$(BIN)/python -m loadtest.decisions

bench-telemetry: setup ## what traces cost a replica: off, and one request in 100 sampled, 8 minutes
	$(BIN)/python -m loadtest.telemetry --save

bench-audit: setup ## the audit beside Gatekeeper's at 1,000 and 10,000 Pods, about 8 minutes
	$(BIN)/python -m loadtest.audit --save

bench-reports: setup ## policy reports of 1,000 violating Pods: bytes in etcd, and writes as they roll, about 8 minutes
	$(BIN)/python -m loadtest.reports --save

LOAD ?= --shape average --run-time 20s
load: setup .venv-load/.done ## Locust against a server of its own; LOAD="--shape spike --rate 200", see loadtest/README.md
	$(BIN)/python -m loadtest.locust $(LOAD)

.venv-load/.done: requirements/load.txt | .venv/.done
	test -x .venv-load/bin/python || $(PYTHON) -m venv --without-pip .venv-load
	$(BIN)/uv pip sync --quiet --require-hashes --python .venv-load/bin/python requirements/load.txt
	touch $@

SOAK_SECONDS ?= 1200
soak: setup ## replicas under load for SOAK_SECONDS, policies that change, replicas that end; checks every verdict
	$(BIN)/python -m loadtest.soak --seconds $(SOAK_SECONDS)

soak-decisions: setup ## the decision log's crash tests for SOAK_SECONDS on each transport
	WADDLE_SOAK_SECONDS=$(SOAK_SECONDS) $(PYTEST) -s tests/behaviour/test_decisions_survive_crashes.py
