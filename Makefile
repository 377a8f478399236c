# make demo          the virtual HAL, from nothing to a job on every GPU   (NODES=mini: six of its servers)
# make test          all checks and tests; make test-full adds the slow proofs
# make help          the rest
SHELL := /bin/bash
NODES ?= full
ROLE ?=
NAME ?=
NODE ?=
PARTS ?=
SITE ?= hal
VAULT_PASSWORD_FILE ?=
ROTATE ?=
KEY ?=
PRINCIPALS ?=
DAYS ?= 30
DIR ?= wheelhouse
WHEELHOUSE ?=
INVENTORY := -i inventory/virtual/$(if $(filter mini,$(NODES)),mini,hal).yml
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg

.PHONY: help setup wheelhouse demo site ssh shell secrets certificate clean distclean lint unit check molecule test prove test-full \
  written new-role flaky mutate bench

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 14

setup: ## system packages and .venv on this machine (WHEELHOUSE=DIR: the Python packages from there, without a network)
	@HAL_WHEELHOUSE='$(or $(WHEELHOUSE),$(HAL_WHEELHOUSE))' tools/prepare-controller

wheelhouse: setup ## all Python packages as files, for a controller without a network (DIR=wheelhouse)
	@tools/wheelhouse '$(DIR)'

demo: setup ## the virtual HAL up to a job on all GPUs (NODES=mini for a small one)
	@$(PYTHON) molecule/virtual_hal/demo/run.py --nodes $(NODES)

site: setup ## roll the running virtual HAL out again
	@ansible-playbook $(INVENTORY) playbooks/site.yml

ssh: setup ## log in to a virtual node: make ssh NODE=hal05
	@$(PYTHON) molecule/virtual_hal/running/ssh_config.py $(INVENTORY) --login '$(NODE)'

shell: setup ## a shell in which ansible-playbook, hal-audit and the others are for the virtual HAL that make demo left running
	@test -f .state/env || { echo 'make shell: no virtual HAL is running here; make demo makes one' >&2; exit 2; }
	@exec bash --rcfile <(printf '%s\n' '[ ! -f ~/.bashrc ] || . ~/.bashrc' '. .state/env')

secrets: setup ## the secrets of a site that are missing: make secrets SITE=hal VAULT_PASSWORD_FILE=FILE (ROTATE=NAME)
	@$(PYTHON) -m hal_cluster.secrets --site '$(SITE)' $(if $(VAULT_PASSWORD_FILE),--vault-password-file '$(VAULT_PASSWORD_FILE)') --rotate '$(ROTATE)'

certificate: setup ## a user certificate: make certificate USER=alice KEY=alice.pub PRINCIPALS=root DAYS=30
	@test '$(origin USER)' = 'command line' -a -n '$(KEY)' || { echo 'make certificate USER=NAME KEY=FILE.pub' >&2; exit 2; }
	@ansible-playbook -i inventory/$(SITE)/hal.yml playbooks/certificate.yml -e "certificate_user='$(USER)'" \
	  -e "certificate_key='$(abspath $(KEY))'" -e "certificate_principals='$(PRINCIPALS)'" -e "certificate_days='$(DAYS)'"

clean: ## remove every virtual node, network and mount of this checkout
	@molecule/virtual_hal/clean

distclean: clean ## also the virtual environment, and images and packages unless other checkouts use them
	@molecule/virtual_hal/clean --caches
	@rm -rf .venv .state

lint: setup ## linters and type checkers
	@$(PYTHON) tests/run.py lint

unit: setup ## unit, property and contract tests
	@$(PYTHON) tests/run.py unit

check: setup ## lint and unit: needs no node
	@$(PYTHON) tests/run.py lint unit

molecule: setup ## the scenario of a role: make molecule ROLE=time
	@test -n '$(ROLE)' || { echo 'make molecule ROLE=NAME' >&2; exit 2; }
	@$(PYTHON) tests/run.py --scenario '$(ROLE)' scenarios

test: setup ## lint, unit, property and contract tests, a mini rollout, and unproven scenarios while time lasts
	@$(PYTHON) tests/run.py lint unit scenarios rollout

prove: setup ## every scenario and slow proof that is not proven for what it depends on (tests/proofs; commit what it writes)
	@tools/prepare-controller --full
	@$(PYTHON) tests/run.py prove

test-full: setup ## everything, proven or not: also every package on a node, the full virtual HAL, ppc64le nodes
	@tools/prepare-controller --full
	@$(PYTHON) tests/run.py lint unit rollout slow

written: setup ## tests/contract/written: what the nodes of HAL get; look at what your change does to it
	@$(PYTHON) -m tests.contract.written

new-role: export NEW_ROLE := $(NAME)
new-role: setup ## a role with its scenario, of the shape that all have: make new-role NAME=ntp
	@$(PYTHON) tools/new_role.py "$$NEW_ROLE"

flaky: setup ## tests/flaky.md: what failed, and passed when it was run once more
	@$(PYTHON) tests/flaky.py

mutate: setup ## which small faults the tests notice: make mutate SEED=7 SAMPLE=20 ONLY=python AREA=slurm MINUTES=10 (or ALL=1)
	@$(PYTHON) tests/mutate $(if $(SEED),--seed '$(SEED)') $(if $(SAMPLE),--sample '$(SAMPLE)') $(if $(ONLY),--only '$(ONLY)') \
	  $(if $(AREA),--area '$(AREA)') $(if $(ALL),--all) $(if $(MINUTES),--minutes '$(MINUTES)') $(if $(SCENARIOS),--scenarios) \
	  $(if $(REPORT),--report)

bench: setup ## ratios beside their goals: make bench PARTS='inventory calls' for some of them
	@$(PYTHON) tests/bench/run.py $(PARTS)
