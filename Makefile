PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REQUIRED ?= --required
unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of interpreters, which should not compile anew

.PHONY: run test lint types tests coverage conformance test-adapters test-clients test-agent test-page test-fleet soak-fleet test-plugs bench-fleet test-references test-typing bundle docs picture release-check bench bench-agent bench-peers bench-growth bench-probes bench-check contracts-layered contracts-images soak fuzz-shell clean

run: $(VENV)/ready
	@$(BIN)/handrail demo

test: lint types tests

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(VENV)/ready
	$(BIN)/mypy

tests: $(VENV)/ready
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not serial'
	$(BIN)/python -m pytest -m serial $$(grep -rl --include='*.py' pytest.mark.serial tests)

coverage: $(VENV)/ready
	$(BIN)/python tests/support/run_coverage.py

conformance: $(VENV)/ready
	$(BIN)/python tests/conformance/conform.py $(REQUIRED)

test-adapters: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/adapters
	$(VENV)/adapters/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,adapters]'
	$(VENV)/adapters/bin/python -m pytest tests/surfaces/test_adapters.py

GEMINI := $(VENV)/references/gemini-0.61.0
PROMPTS := $(VENV)/references/prompts-1
NPM_OPTIONS := --silent --no-audit --no-fund --no-package-lock --ignore-scripts

test-references: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/references
	@if $(VENV)/references/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[dev]' --requirement tests/references/requirements.txt; \
	then PATH=$(CURDIR)/$(VENV)/references/bin:$$PATH; test -e $(GEMINI)/installed || \
		{ npm install $(NPM_OPTIONS) --prefix $(GEMINI) @google/gemini-cli-core@0.61.0 && touch $(GEMINI)/installed; } || \
		{ echo 'test-references: @google/gemini-cli-core cannot be installed, its comparison is skipped'; test -z '$(REQUIRED)'; } && \
		{ test -e $(PROMPTS)/installed || { npm install $(NPM_OPTIONS) --prefix $(PROMPTS) \
			inquirer@12.9.6 enquirer@2.4.1 prompts@2.4.2 && touch $(PROMPTS)/installed; } || \
		{ echo 'test-references: inquirer cannot be installed, its prompts are skipped'; test -z '$(REQUIRED)'; }; } && \
		python -m pytest -rs tests/references; \
	else echo 'test-references: skipped, the references cannot be installed'; test -z '$(REQUIRED)'; fi

test-agent: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/agent
	@if $(VENV)/agent/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,agent]'; \
	then $(VENV)/agent/bin/python -m pytest -rs tests/agent; \
	else echo 'test-agent: skipped, handrail[agent] cannot be installed'; test -z '$(REQUIRED)'; fi

test-plugs: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/plugs
	$(VENV)/plugs/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' inspect-ai==0.3.285 swe-rex==1.4.0
	$(VENV)/plugs/bin/python -m pip install --quiet --disable-pip-version-check --no-deps verl==0.9.1  # the rest needs PyTorch
	if $(VENV)/plugs/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then \
		$(VENV)/plugs/bin/python -m pip install --quiet --disable-pip-version-check harbor==0.24.0 openhands-sdk==1.58.0 && \
		$(VENV)/plugs/bin/python -m pip install --quiet --disable-pip-version-check --no-deps nemo-gym==0.4.0; \
	else echo 'test-plugs: harbor, openhands-sdk and nemo-gym need Python 3.12, and stand-ins take their places'; fi
	$(VENV)/plugs/bin/python -m pytest -rs tests/plugs

ALONE := sh tests/fleet/alone.sh

test-fleet: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/fleet
	@if $(VENV)/fleet/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[dev,agent,fleet]'; \
	then $(ALONE) $(VENV)/fleet/bin/python -m pytest -rs tests/fleet/test_ray_fleet.py tests/fleet/test_fleet_agent.py; \
	else echo 'test-fleet: skipped, handrail[fleet] cannot be installed'; test -z '$(REQUIRED)'; fi

AXE := $(VENV)/page/axe-core-4.14.0

test-page: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/page
	@if ! command -v chromium > /dev/null || ! command -v chromedriver > /dev/null; then echo 'test-page: skipped, chromium is not installed'; test -z '$(REQUIRED)'; \
	elif $(VENV)/page/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]' selenium==4.51.0 && \
		{ test -e $(AXE)/installed || { npm install $(NPM_OPTIONS) --prefix $(AXE) axe-core@4.14.0 && touch $(AXE)/installed; }; }; \
	then HANDRAIL_AXE=$(CURDIR)/$(AXE)/node_modules/axe-core/axe.min.js $(VENV)/page/bin/python -m pytest -rs tests/page; \
	else echo 'test-page: skipped, selenium or axe-core cannot be installed'; test -z '$(REQUIRED)'; fi

test-typing: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/typing
	$(VENV)/typing/bin/python -m pip install --quiet --disable-pip-version-check basedpyright==1.40.2
	HANDRAIL_PYRIGHT=$(CURDIR)/$(VENV)/typing/bin/basedpyright $(BIN)/python -m pytest tests/surfaces/test_library.py

test-clients: $(VENV)/ready
	$(BIN)/python tests/clients/install.py
	unshare -rnpf --mount-proc --kill-child sh -c 'ip link set lo up && exec $(BIN)/python -m pytest tests/clients/real_clients.py'

bundle: $(VENV)/ready
	$(BIN)/python packaging/mcpb/bundle.py
	HANDRAIL_BUNDLE=$(CURDIR)/dist/handrail.mcpb $(BIN)/python -m pytest tests/surfaces/test_bundle.py

docs: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	rm -rf build/pages && mkdir -p build/pages
	cp -R README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE docs contracts build/pages  # laid out as here
	$(VENV)/docs/bin/mkdocs build --strict
	@echo build/site/index.html

release-check: $(VENV)/ready
	$(BIN)/python packaging/release_check.py

picture: $(VENV)/ready
	$(BIN)/python packaging/demo_svg.py

bench: $(VENV)/ready
	$(BIN)/python -m bench

bench-agent: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/agent
	$(VENV)/agent/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,agent]'
	$(VENV)/agent/bin/python -m bench agent_loop

bench-fleet: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/fleet
	$(VENV)/fleet/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,fleet]' inspect-ai==0.3.285 swe-rex==1.4.0
	$(ALONE) $(VENV)/fleet/bin/python -m bench fleet

bench-peers: $(VENV)/ready
	$(BIN)/python -m bench.race
	$(BIN)/python -m bench.report

bench-growth: $(VENV)/ready
	$(BIN)/python -m bench.growth $(if $(MILLION),--million)
	$(BIN)/python -m bench.report

bench-probes: $(VENV)/ready
	$(BIN)/python -m bench.race.probes
	$(BIN)/python -m bench.report

bench-check: $(VENV)/ready
	$(BIN)/python -m bench.baseline

soak: $(VENV)/ready
	HANDRAIL_SOAK_KILLS=1000 HANDRAIL_SOAK_SECONDS=60 HANDRAIL_LONG=1 \
		$(BIN)/python -m pytest tests/faults/test_soak.py tests/faults/test_pack_faults.py tests/faults/test_commit_faults.py \
		tests/properties/test_model.py
	HANDRAIL_LONG=1000 $(BIN)/python -m pytest tests/properties/test_undo_trees.py
	HANDRAIL_LONG=5000 $(BIN)/python -m pytest tests/properties/test_patch_any.py \
		tests/ops/test_patch_differential.py tests/ops/test_patch_fuzz.py tests/ops/test_diff.py
	HANDRAIL_LONG=2000 $(BIN)/python -m pytest -n auto tests/properties/test_commit_replay.py
	HANDRAIL_EXAMPLES=5000 $(BIN)/python -m pytest tests/kernel/test_engines_agree.py tests/kernel/test_globs_like_ripgrep.py
	HANDRAIL_MANY=2000 HANDRAIL_INTERLEAVINGS=500 $(BIN)/python -m pytest -m slow \
		tests/kernel/test_endings.py tests/kernel/test_terminals.py
	HANDRAIL_TEST_SECONDS=60 $(BIN)/python -m pytest -m slow tests/surfaces/test_mcp_http.py

contracts-layered: $(VENV)/ready
	HANDRAIL_LONG=1 $(BIN)/python -m pytest -n auto tests/contracts/test_contracts_layered.py

contracts-images: $(VENV)/ready
	HANDRAIL_LONG=1 $(BIN)/python -m pytest -rs tests/contracts/test_contracts_images.py

soak-fleet: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/fleet
	$(VENV)/fleet/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[dev,agent,fleet]'
	HANDRAIL_FLEET_KILLS=13 HANDRAIL_FLEET_TASKS=500 $(ALONE) $(VENV)/fleet/bin/python -m pytest --timeout 3600 \
		tests/fleet/test_ray_fleet.py tests/fleet/test_ray_many.py

fuzz-shell: $(VENV)/ready
	PYTHONPATH=tests $(BIN)/python -m support.fuzz_shell 60000

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Handrail needs Python 3.11 or later; set PYTHON=…")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .conformance bench/out build dist
