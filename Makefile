# Everything runs in the project's own virtual environment, which every target makes if it is not there.
PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin
DEMO   := $(VENV)/.installed
STAMP  := $(VENV)/.installed-for-tests
DOCS   := $(VENV)/.installed-for-docs
WORKERS ?= 2

.PHONY: help demo servers test coverage check docs format audit bench bench-peers clean

help:
	@echo "make demo         make a data set, ask it questions, watch the budget"
	@echo "make test         the whole test suite, and how much of the code it runs"
	@echo "make coverage     which lines the last make test did not run"
	@echo "make check        formatting, lint, types, architecture"
	@echo "make docs         the documentation as a site, in build/site"
	@echo "make audit        long audits and soak runs, many hours; in parts: make audit-parts lists them"
	@echo "make bench        benchmarks, beside their bars; make bench-peers first, to compare with other tools"

$(DEMO) $(STAMP) $(DOCS): pyproject.toml constraints.txt
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ($(if $(EXTRAS),some minutes,a minute), once)"
	@$(RUN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".$(EXTRAS)"
	@touch $@

$(STAMP): EXTRAS := [test]
$(DOCS): EXTRAS := [docs]

demo: $(DEMO)
	@$(RUN)/confide demo

# What some tests run against: installed if it may be, otherwise those tests are skipped.
servers:
	@tests/install-servers

# Lines are counted as they are first run; the plugin that does so is loaded before pytest looks at plugins, which is a warning of pytest's.
test: $(STAMP) servers
	@mkdir -p build
	@$(RUN)/python -m slipcover --source src/confide --json --out build/coverage.json \
		-m pytest -n $(WORKERS) --dist worksteal -m "not audit" -W ignore::pytest.PytestAssertRewriteWarning
	@$(RUN)/python -c 'import json; print("%.1f %% of the lines of src were run" % json.load(open("build/coverage.json"))["summary"]["percent_covered"])'

coverage:
	@$(RUN)/python -m slipcover --merge build/coverage.json --out build/coverage.json --skip-covered

check: $(STAMP)
	$(RUN)/ruff format --check src tests bench
	$(RUN)/ruff check src tests bench
	$(RUN)/mypy
	$(RUN)/lint-imports --no-cache

# Links are relative to this folder, so the site is made of a copy of its pages. Whatever is amiss, a link or a name of the API, is an error.
docs: $(DOCS)
	@rm -rf build/pages build/site && mkdir -p build/pages && cp -r *.md LICENSE docs build/pages
	@$(RUN)/zensical build --strict --clean

format: $(STAMP)
	$(RUN)/ruff format src tests bench
	$(RUN)/ruff check --fix src tests bench

# Long audits, in parts of at most 80 minutes: make audit-pairs, make audit-faults; `make audit-parts` lists them.
audit-%: $(STAMP) servers
	@$(RUN)/python -m tests.laboratory.audit $(filter-out parts,$*)

audit: $(STAMP) servers
	@$(RUN)/python -m tests.laboratory.audit $$($(RUN)/python -m tests.laboratory.audit | cut -d' ' -f1)

bench: $(STAMP)
	@$(RUN)/python -m bench

# The peers need different versions of one library, so each has an environment of its own.
bench-peers: .venv-peers/opendp/.installed .venv-peers/smartnoise/.installed .venv-peers/mbi/.installed

.venv-peers/opendp/.installed: PEER = "opendp[polars]"
.venv-peers/smartnoise/.installed: PEER = smartnoise-sql
.venv-peers/mbi/.installed: PEER = mbi==2.0.0
.venv-peers/%/.installed:
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(PEER)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check pyarrow
	@touch $@

clean:
	rm -rf $(VENV) .venv-peers .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache build dist src/*.egg-info
