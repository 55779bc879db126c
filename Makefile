# make audit    runs the pools of params/ and prints where the report is
# make audit-all  runs those of params/full too
# make test     runs the whole test suite
# make test-vllm  runs TinySee's models in the real vLLM, which it installs in .venv-vllm first (3.5 GB, minutes)
# make test-vlmeval  runs the bridge with the packaged VLMEvalKit, which it installs in .venv-vlmeval first (6.5 GB)
# make fuzz     throws damaged files and odd replies at the readers for ten minutes
# make calibrate  measures the audit's own error rates on worlds of known truth and prints the tables (minutes)
# make bench    measures speed and memory as ratios within one run
# make bench-leaderboard  measures a leaderboard of many models and benchmarks (RUN=--full: a benchmark of full size)
# make audit and make test create .venv from requirements.lock when it is not there yet.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
VLLM_VENV ?= .venv-vllm
VLMEVAL_VENV ?= .venv-vlmeval
RUN ?=
# test files at a time
WORKERS ?= 3

.PHONY: audit audit-all test test-vllm test-vlmeval calibrate lab bench bench-leaderboard fuzz lint lock

audit: $(READY)
	$(BIN)/python -m auditlib run params/*.yaml $(RUN)

audit-all: $(READY)
	$(BIN)/python -m auditlib run params/*.yaml params/full/*.yaml $(RUN)

test: $(READY)
	$(BIN)/python -m pytest -p no:cacheprovider -n $(WORKERS) --dist loadfile $(RUN)

test-vllm: $(VLLM_VENV)/.ready
	$(VLLM_VENV)/bin/python -m pytest -p no:cacheprovider -rs tests/vllm_live $(RUN)

test-vlmeval: $(READY) $(VLMEVAL_VENV)/.ready
	AUDITLIB_VLMEVAL_PYTHON=$(abspath $(VLMEVAL_VENV))/bin/python \
	  $(BIN)/python -m pytest -p no:cacheprovider -rs tests/vlmevalkit_live $(RUN)

lab: $(READY)
	$(BIN)/jupyter lab --notebook-dir=. notebooks

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz 10

calibrate: $(READY)
	$(BIN)/python -m auditlib.calibration --ship $(RUN)

bench: $(READY)
	@for script in tests/bench/bench_*.py; do echo "$$script"; $(BIN)/python $$script || exit 1; done

bench-leaderboard: $(READY)
	$(BIN)/python tests/bench/leaderboard.py $(RUN)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# The lock names versions and no address; run this after a change of the ranges in pyproject.toml.
lock:
	uv pip compile --universal pyproject.toml --extra dev -o requirements.lock --python-version 3.11

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip --upgrade
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $(READY)

# vLLM has its own environment: its torch and its bounds on other packages are no matter of the audit's.
$(VLLM_VENV)/.ready: tests/vllm_live/install.py pyproject.toml
	test -x $(VLLM_VENV)/bin/python || $(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python tests/vllm_live/install.py
	touch $@

# So has VLMEvalKit, which asks for torch and some 70 packages more.
$(VLMEVAL_VENV)/.ready: pyproject.toml
	test -x $(VLMEVAL_VENV)/bin/python || $(PYTHON) -m venv $(VLMEVAL_VENV)
	$(VLMEVAL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[vlmeval]'
	touch $@
