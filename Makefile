# make demo          the virtual HAL, from nothing to a job on every GPU   (NODES=mini: six of its servers)
# make test          all checks and tests; make test-full adds the slow proofs
# make help          the rest
SHELL := /bin/bash
NODES ?= full
ROLE ?=
NODE ?=
PARTS ?=
INVENTORY := -i inventory/hal/hal.yml -i inventory/virtual/$(if $(filter mini,$(NODES)),mini,hal).yml
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg

.PHONY: help setup demo site ssh clean distclean lint unit check molecule test test-full bench

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 14

setup: ## system packages and .venv on this machine
	@molecule/shared/prepare-controller

demo: setup ## the virtual HAL up to a job on all GPUs (NODES=mini for a small one)
	@$(PYTHON) molecule/shared/demo.py --nodes $(NODES)

site: setup ## roll the running virtual HAL out again
	@ansible-playbook $(INVENTORY) playbooks/site.yml

ssh: setup ## log in to a virtual node: make ssh NODE=hal05
	@$(PYTHON) molecule/shared/ssh_config.py $(INVENTORY) --login '$(NODE)'

clean: ## remove every virtual node, network and mount
	@molecule/shared/clean

distclean: clean ## also the images, packages and the virtual environment
	@molecule/shared/clean --caches
	@rm -rf .venv .state

lint: setup ## linters and type checkers
	@$(PYTHON) tests/run.py lint

unit: setup ## unit, property and contract tests
	@$(PYTHON) tests/run.py unit

check: setup ## lint and unit: needs no node
	@$(PYTHON) tests/run.py lint unit

molecule: setup ## the scenario of a role: make molecule ROLE=time
	@$(PYTHON) tests/run.py --scenario '$(ROLE)' scenarios

test: setup ## lint, unit, property and contract tests, every scenario, a mini rollout
	@$(PYTHON) tests/run.py lint unit scenarios rollout

test-full: setup ## make test and the slow proofs: every package on a node, the full virtual HAL, ppc64le nodes
	@molecule/shared/prepare-controller --full
	@$(PYTHON) tests/run.py lint unit scenarios rollout slow

bench: setup ## ratios beside their goals: make bench PARTS='inventory calls' for some of them
	@$(PYTHON) tests/bench/run.py $(PARTS)
