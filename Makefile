# Every target sets up what it needs by itself; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help run setup install uninstall deb test lab vm clients conformance check ansible molecule lint-ansible role-readme dist sandbox-image bench bench-peers soak show-main show-units show-rollout show-protocol show-sandbox show-connect show-policy sandbox-report trace install-hooks clean

PYTHON ?= python3
# Installing takes the host's own, whichever Python stands first on PATH.
HOST_PYTHON := /usr/bin/python3
VENV := .venv/bin
# More words for the target's program, such as ARGS="--runtime-dir /tmp/run".
ARGS ?=

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run:  ## set everything up and serve on 127.0.0.1:8765, first the examples
	@exec $(PYTHON) tools/run.py $(ARGS)

setup:  ## make .venv with everything that the tests need
	@$(PYTHON) tools/setup.py

install:  ## install on this host, as root; with DESTDIR=DIR only lay the files below it
	@PYTHONPATH=supervisor PYTHONDONTWRITEBYTECODE=1 exec $(HOST_PYTHON) -m autobot_mcp_bridge.cli.main install $(if $(DESTDIR),--root $(DESTDIR)) $(ARGS)

uninstall:  ## take it off this host again; ARGS=--keep-data leaves configuration and data
	@PYTHONPATH=supervisor PYTHONDONTWRITEBYTECODE=1 exec $(HOST_PYTHON) -m autobot_mcp_bridge.cli.main uninstall $(if $(DESTDIR),--root $(DESTDIR)) $(ARGS)

deb: setup  ## make the package of each Debian suite in dist/, in containers (root)
	@PATH="$(CURDIR)/$(VENV):$$PATH" exec $(VENV)/python tools/deb.py $(ARGS)

test: setup ansible  ## run the suite; it says what could not run (a failure with CI=true)
	@PATH="$(CURDIR)/$(VENV):$$PATH" exec $(VENV)/python -m pytest -n auto --dist loadfile -m "not soak and not removal and not lab and not vm and not agents" $(ARGS)

lab: setup  ## test against real systemd 252 and 257, in containers (root)
	@PATH="$(CURDIR)/$(VENV):$$PATH" exec $(VENV)/python -m pytest -m "lab and not soak" $(ARGS)

vm: setup  ## test what needs a kernel of its own, in an emulated machine (root, qemu-system-x86)
	@PATH="$(CURDIR)/$(VENV):$$PATH" exec $(VENV)/python -m pytest -m vm $(ARGS)

clients: setup  ## run the real clients from PyPI and npm against the proxy (installs them first)
	@PATH="$(CURDIR)/$(VENV):$$PATH" exec $(VENV)/python -m pytest -m clients $(ARGS)

conformance: setup  ## run the public MCP conformance suite and raw probes against the proxy
	@PYTHONPATH=tests PATH="$(CURDIR)/$(VENV):$$PATH" exec $(VENV)/python -m conformance $(ARGS)

check: setup  ## lint and type-check only
	@$(VENV)/ruff check
	@$(VENV)/ruff format --check
	@$(VENV)/mypy

ansible:  ## make .venv-ansible with Ansible, molecule and their linters (Python 3.12 or newer)
	@$(PYTHON) tools/ansible.py

molecule: setup ansible dist  ## run molecule's scenarios in the lab (root); ARGS=default for one
	@exec $(VENV)/python tests/run_molecule.py $(ARGS)

lint-ansible: ansible  ## lint roles, playbooks and scenarios: ansible-lint (production), yamllint, READMEs
	@PATH="$(CURDIR)/.venv-ansible/bin:$$PATH" yamllint --strict .
	@PATH="$(CURDIR)/.venv-ansible/bin:$$PATH" ansible-lint --nocolor < /dev/null 2>&1 | cat
	@.venv-ansible/bin/python tools/role_readme.py --check

role-readme: ansible  ## write the roles' READMEs from their meta/argument_specs.yml
	@.venv-ansible/bin/python tools/role_readme.py

dist: setup  ## make dist/ for the role mcp_bridge_host: the wheel, and its requirements with hashes
	@$(VENV)/python tools/dist.py

sandbox-image:  ## make an image for servers with a root of their own in dist/ (root)
	@exec $(PYTHON) tools/sandbox_image.py $(ARGS)

bench: setup  ## measure the proxy beside its limits, interleaved
	@exec $(VENV)/python bench/run.py $(ARGS)

bench-peers: setup  ## the same beside other gateways, which are installed first
	@exec $(VENV)/python bench/run.py --peers $(ARGS)

soak: setup  ## run what takes many minutes
	@PATH="$(CURDIR)/$(VENV):$$PATH" exec $(VENV)/python -m pytest -m soak $(ARGS)

show-main: setup  ## show what the main job promises: what, figure, bar, PASS, FAIL or NOT RUN
	@exec $(VENV)/python tests/show_main.py $(ARGS)

show-units: setup  ## the same of servers as units, on systemd 252 and 257 (root)
	@exec $(VENV)/python tests/show_units.py $(ARGS)

show-rollout: setup ansible dist  ## the same of the rollout by Ansible, on Debian 12 and 13 (root)
	@exec $(VENV)/python tests/show_rollout.py $(ARGS)

show-protocol: setup ansible  ## the same of MCP in both eras: suite, probes, clients, streams, OAuth (root)
	@exec $(VENV)/python tests/show_protocol.py $(ARGS)

show-sandbox: setup  ## the same of profiles, network modes, secrets and doctor, on both systemds (root)
	@exec $(VENV)/python tests/show_sandbox.py $(ARGS)

show-connect: setup  ## the same of import, clients, remote servers and TLS (root)
	@exec $(VENV)/python tests/show_connect.py $(ARGS)

show-policy: setup  ## the same of principals, projects, the policy chain and its audit (root)
	@exec $(VENV)/python tests/show_policy.py $(ARGS)

sandbox-report: setup  ## try what servers must not do, in each profile and network mode (root)
	@exec $(VENV)/python tests/sandbox/report.py $(ARGS)

trace: setup ansible  ## show each requirement with its tests and their results
	@exec $(VENV)/python tests/trace.py $(ARGS)

install-hooks: setup  ## let git run the linters before each commit
	@$(VENV)/pre-commit install

clean:  ## remove .venv and every cache in the checkout
	rm -rf .venv .venv-ansible .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
	find supervisor tests tools bench -name __pycache__ -prune -exec rm -rf {} +
