# Everything a person runs, from a machine that has Python 3.11 and make.
#   make demo            set up .venv and promote the quickstart notebook, no server, no account
#   make test            the test suite (at most 9 minutes on 2 cores)
#   make test-all        the same with every kill point, every algorithm and long runs
#   make bench           figures, as `name value unit target ok`
#   make bench-learning  do promoted runs learn what plain SB3 learns? (about 40 minutes)
#   make lab             JupyterLab on the tutorial notebooks
#   make lint            ruff and mypy

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

# Two workers keep both cores busy while tests wait for processes; a file's tests stay together and
# in order, so that the long ones start early and share what they have set up.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-all bench bench-learning lab lint format clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rlnb needs Python 3.11 or newer; run: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing rlnb and what it builds on into $(VENV) (a few minutes the first time) ..."
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing rlnb with its development tools into $(VENV) ..."
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/rlnb promote notebooks/00_quickstart.ipynb --store runs --wait

test: $(VENV)/.installed-dev
	$(PYTEST) -m 'not slow'

test-all: $(VENV)/.installed-dev
	$(PYTEST)

bench: $(VENV)/.installed-dev
	$(BIN)/python -m tests.benchmarks

bench-learning: $(VENV)/.installed-dev
	$(BIN)/python -m tests.benchmarks.learning

lab: $(VENV)/.installed
	$(BIN)/jupyter lab notebooks

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
