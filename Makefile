PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test check lint coverage bench campaign docs release-check clean

demo: $(VENV)/demo.done ## the whole path on built-in data
	$(BIN)/clickbridge demo

test: $(VENV)/test.done ## every test
	$(BIN)/pytest -n 2 --dist loadscope

lint: $(VENV)/test.done
	$(BIN)/ruff check src tests benchmarks docs/*.py .ci
	$(BIN)/ruff format --check src tests benchmarks docs/*.py .ci
	$(BIN)/mypy

check: lint test ## what a change must pass

coverage: $(VENV)/test.done ## lines and branches of src that the tests run; below 92% it fails
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 --dist loadscope
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --sort=cover

bench: $(VENV)/test.done ## make bench NAME=ingest
	$(BIN)/python benchmarks/$(NAME).py

campaign: $(VENV)/test.done ## make campaign NAME=flips COUNT=100000; no COUNT is the long form
	PYTHONPATH=tests $(BIN)/python -P -m campaigns $(NAME) --count $(or $(COUNT),0)

docs: $(VENV)/test.done ## the site, in build/site; a warning stops it
	$(BIN)/python docs/make_site.py

release-check: ## build, install the wheel on every supported Python, run the tests there
	$(PYTHON) .ci/release_check.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[serve]"
	touch $@

$(VENV)/test.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[test]"
	touch $@ $(VENV)/demo.done

clean:
	rm -rf $(VENV) demo-out build dist
