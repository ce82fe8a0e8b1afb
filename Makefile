# make demo        train NFS on a small Navier-Stokes set and write a report (minutes)
# make test        run the tests but those marked slow (four minutes on two cores)
# make test-all    run every test (a quarter of an hour)
# make docs        build the documentation into site/
# make notebooks   execute the notebooks of docs/notebooks (minutes)
# make pages       write the generated tables into the pages of docs/
# make pretrained  train the models that come with nfsgeo (ten minutes)
# All set up what they need in .venv first; Python 3.11 or later is all they ask.

VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed
DEMO   := runs/demo
IS_311 := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
            $$p -c '$(IS_311)' >/dev/null 2>&1 && echo $$p && break; done)

.PHONY: demo test test-all docs notebooks pages pretrained lint types format setup constraints clean
.DELETE_ON_ERROR:

demo: $(STAMP)
	@if [ -f $(DEMO)/report.html ]; then \
	  $(BIN)/nfsgeo info $(DEMO) && echo "report  $(DEMO)/report.html" && \
	  echo "Trained earlier; to train again, 'rm -r $(DEMO)' first."; \
	elif [ -f $(DEMO)/checkpoints/last.ckpt ]; then \
	  $(BIN)/nfsgeo train --resume $(DEMO); \
	else \
	  rm -rf $(DEMO) && $(BIN)/nfsgeo train --model nfs --out $(DEMO); \
	fi

test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-all: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebooks: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python docs/making/notebooks.py

pages: $(STAMP)
	$(BIN)/python docs/making/pages.py

pretrained: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python docs/making/pretrained.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(or $(PYTHON),false) -c '$(IS_311)' || { echo "Python 3.11 or later with its venv \
	module is needed; install it or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up $(VENV), once; this takes a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

constraints:
	rm -rf build/pin && $(PYTHON) -m venv build/pin
	build/pin/bin/python -m pip install --quiet 'torch==2.13.0' --editable '.[dev,docs]'
	{ sed -n '/^#/p' constraints.txt; build/pin/bin/python -m pip freeze --all \
	  --exclude-editable | grep -v '^pip==' | sed 's/+cpu$$//'; } > build/pinned.txt
	mv build/pinned.txt constraints.txt

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
