# Two commands are enough: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
HOUSES := -e . -e ./paper -e ./shop
INSTALLED := .venv/.installed
READY := .venv/.ready
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
unexport PYTHONDONTWRITEBYTECODE  # modules are compiled when they are first imported, and that is kept

.PHONY: demo paper test test-library test-paper test-shop test-all test-extras test-pythons lint bench bounds docs wheel smoke-lowest clean

# A tour of a minute or two, which ends with the page out/demo/index.html.
demo: $(INSTALLED)
	@$(BIN)/rlsvi demo --out out/demo

# All figures of the paper at a small scale, and the page out/paper/report.html.
paper: $(INSTALLED)
	@echo "Computing all figures of the paper at a small scale takes a quarter of an hour of processor time: eight minutes on two cores. Ctrl-C loses nothing that is finished."
	@$(BIN)/rlsvi paper --scale quick --out out/paper
	@$(BIN)/rlsvi report out/paper

# Lint, types and the quick tests; test-all runs the others. Two processes take the files in the order of
# conftest.py, each file as a whole. A single test: `pytest tests/test_x.py::test_y`.
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0
test: lint
	$(PYTEST)

# The tests of one house.
test-library: $(READY)
	$(PYTEST) tests

test-paper: $(READY)
	$(PYTEST) paper/tests

test-shop: $(READY)
	$(PYTEST) shop/tests

test-all: $(READY)
	$(PYTEST) --thorough
	$(MAKE) test-pythons
	$(MAKE) smoke-lowest

# The tests that need an optional package; what cannot be installed is named, and its tests are skipped.
test-extras: $(READY)
	@for extra in "-e ./paper[bsuite]" "-e .[tensorboard]" minari[create,hdf5] pandas pyarrow stable-baselines3; do \
	timeout 600 $(PIP) $$extra || echo "$$extra cannot be installed; its tests are skipped."; done
	$(BIN)/python -m pytest --thorough -k "pandas or minari or tensorboard or full_disk_leaves or stable_baselines or bsuite"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks.engine --out out/bench
	$(BIN)/python -m benchmarks.tetris --out out/bench
	$(BIN)/python -m benchmarks.stationary --out out/bench
	$(BIN)/python -m benchmarks.recommendation --out out/bench
	$(BIN)/python -m benchmarks.ensemble --out out/bench
	$(BIN)/python -m benchmarks.shop_load --out out/bench
	$(BIN)/python -m benchmarks.shop_strangers --out out/bench
	$(BIN)/python -m benchmarks.shop_faults --kills 20 --seconds 300 --out out/bench
	$(BIN)/python -m benchmarks.practice choose --learners ours q-learning --seeds 1 --out out/bench/practice

# Every agent, and files with crafted indices, with compiled code that checks every access to an array.
bounds: $(READY)
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest tests/contract/out_of_bounds.py

# The documentation as a site that needs no network: out/docs/index.html.
docs: .venv/.docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir out/docs
	@echo "Open out/docs/index.html in a browser."

.venv/.docs-ready: $(READY)
	@$(PIP) -e ".[docs]"
	@touch $@

# Three wheels of pure Python. Each holds all files of its package, and passes its smoke test in an empty folder, where
# nothing else is installed than what it needs.
wheel: $(INSTALLED)
	@rm -rf out/wheel
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir out/wheel . ./paper ./shop
	@$(PYTHON) -m venv out/wheel/venv
	@set -e; wheels=$$PWD/out/wheel; python=$$wheels/venv/bin/python; \
	for each in src/rlsvi:tests/test_smoke.py paper/src/rlsvi_paper:paper/tests/test_smoke_paper.py \
	shop/src/rlsvi_shop:shop/tests/test_smoke_shop.py; do \
	source=$${each%:*}; name=$${source##*/}; \
	git ls-files $$source | sed "s,.*src/,," | sort > $$wheels/expected; \
	$$python -m zipfile --list $$wheels/$$name-*.whl | grep "^$$name/" | cut -d ' ' -f 1 | sort > $$wheels/found; \
	diff $$wheels/expected $$wheels/found; \
	$$python -m pip install --quiet --disable-pip-version-check pytest $$wheels/$$name-*.whl; \
	folder=$$(mktemp -d); cp $${each#*:} $$folder; \
	(cd $$folder; $$python -c "import $$name, sys; assert $$name.__file__.startswith(sys.prefix)"; \
	$$python -m pytest -q -W ignore::pytest.PytestUnknownMarkWarning); rm -r $$folder; \
	case $$name in *_*) $$python -m pip uninstall --quiet --yes $$name;; esac; done
	@ls out/wheel/*-py3-none-any.whl

# The lowest versions that the three packages allow, in a .venv-lowest of their own.
UV := $(BIN)/uv
UV_INSTALL := $(UV) pip install --quiet --only-binary :all: --no-binary rlsvi,rlsvi-paper,rlsvi-shop
SMOKE := tests/test_smoke.py paper/tests/test_smoke_paper.py shop/tests/test_smoke_shop.py
smoke-lowest: $(UV)
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-lowest
	$(UV_INSTALL) --python .venv-lowest --resolution lowest-direct $(HOUSES)
	$(UV_INSTALL) --python .venv-lowest pytest hypothesis
	.venv-lowest/bin/python -m pytest -W default $(SMOKE)

# The smoke tests and the types on every Python from 3.11 on that is found, also by pyenv, with the newest versions of
# all packages. One for which a package cannot be installed is named and skipped.
PYTHONS = $(shell for minor in 11 12 13 14 15 16; do \
	for python in $$(command -v python3.$$minor) $$HOME/.pyenv/versions/3.$$minor.*/bin/python; do \
	$$python -c "import sys; sys.exit(sys.version_info[:2] != (3, $$minor))" 2>/dev/null && echo $$python && break; \
	done; done; true)
test-pythons: $(UV)
	@set -e; for python in $(PYTHONS); do \
	version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); venv=.venv-$$version; \
	echo "Python $$version ($$python)"; \
	$(UV) venv --quiet --allow-existing --python $$python $$venv; \
	$(UV_INSTALL) --upgrade --python $$venv $(HOUSES) "psycopg[binary]" pytest hypothesis || \
	{ echo "Python $$version is skipped: not all packages can be installed."; continue; }; \
	$$venv/bin/python -m pytest -W default $(SMOKE); \
	$(BIN)/mypy --python-version $$version --python-executable $$venv/bin/python; done

$(UV): | $(READY)
	@$(PIP) uv

clean:
	rm -rf .venv .venv-* out

# The three packages, and then what their tests need.
$(INSTALLED): pyproject.toml paper/pyproject.toml shop/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("rlsvi needs Python 3.11 or newer; try: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "Setting up .venv (once; half a minute or so) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) $(HOUSES) & while kill -0 $$! 2>/dev/null; do printf .; sleep 3; done; echo; wait $$!
	@touch $@

$(READY): $(INSTALLED)
	@echo "Installing what the tests need (once; half a minute or so) ..."
	@$(PIP) -e ".[dev]" & while kill -0 $$! 2>/dev/null; do printf .; sleep 3; done; echo; wait $$!
	@touch $@
