# Every target makes what it needs: a machine with Python 3.11 or newer and make is enough.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PY := .venv/bin/python
export PYTHON

.PHONY: help demo test lint format bench bench-extender bench-agent bench-packing fuzz cluster-tools \
	test-cluster test-node test-oldest soak load bench-cluster bench-quota bench-starts lock clean environment environment-dev \
	image release chart docs test-upgrade environment-docs

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: environment ## a story of good and bad pods, told by the real service (under 20 seconds)
	@$(PY) -m cli demo

test: environment-dev ## the test suite, without a cluster
	@$(PY) -m pytest tests --ignore=tests/cluster --ignore=tests/node --numprocesses=auto --maxprocesses=8 --dist=loadfile

lint: environment-dev ## style, format, types and layers
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@.venv/bin/lint-imports

format: environment-dev ## rewrite the code in the house format
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

bench: environment-dev ## what a decision costs, as ratios to a floor measured in the same run
	@$(PY) -m bench

bench-extender: environment-dev ## what an answer to kube-scheduler costs, as ratios to a floor measured in the same run
	@$(PY) -m bench.extender

bench-agent: environment-dev ## what the node agent costs beside 200 pods, floors of the same run beside it
	@$(PY) -m bench.agent

bench-packing: environment-dev ## how full a cluster becomes; HALFCARD_OPENB=DIR names the folder of the openb trace
	@$(PY) -m bench.packing

fuzz: environment-dev ## 100,000 malformed bodies: no 5xx, no hang, memory flat
	@$(PY) -m bench.fuzz

cluster-tools: environment-dev ## build a real Kubernetes from Go modules, once (about 9 minutes and 9 GB)
	@$(PY) -m devcluster.build control-plane node kwok helm containerd

test-cluster: cluster-tools ## webhook and extender on a real control plane (Linux, root)
	@$(PY) -m pytest tests/cluster

test-node: cluster-tools ## a real kubelet on a real containerd (Linux, root)
	@$(PY) -m pytest tests/node

test-oldest: environment-dev ## the same on the oldest Kubernetes that is supported (10 minutes more to build)
	@HALFCARD_KUBERNETES=1.34 $(PY) -m devcluster.build control-plane node kwok helm containerd
	@HALFCARD_KUBERNETES=1.34 $(PY) -m pytest tests/cluster

test-upgrade: cluster-tools ## from the newest tag, or the commit HALFCARD_UPGRADE_FROM, to this tree, under load
	@$(PY) -m pytest tests/node/upgrade.py

soak: cluster-tools ## replicas, quotas, certificates and placement under load for 25 minutes, while things break
	@$(PY) -m tests.cluster.soak --minutes 10
	@HALFCARD_QUOTA_ROUNDS=5 HALFCARD_QUOTA_CREATES=10000 $(PY) -m pytest -q -s tests/cluster/test_gpu_quota_burst.py
	@HALFCARD_CERTS_CREATES=25000 $(PY) -m pytest -q -s tests/cluster/test_certs.py -k rotation
	@HALFCARD_CHURN_PODS=2000 $(PY) -m pytest -q -s tests/cluster/test_extender_churn.py

load: cluster-tools ## 5,000 nodes and 20,000 pods on a real scheduler
	@$(PY) -m tests.cluster.load --nodes 5000 --pods 20000

bench-cluster: cluster-tools ## pods created per second beside webhooks that only say yes
	@$(PY) -m bench.pods_per_second

bench-quota: cluster-tools ## pods created per second against one GpuQuota, beside native quota
	@$(PY) -m bench.quota_per_second

bench-starts: cluster-tools ## GPU pods started by a real kubelet beside pods without GPUs (Linux, root, 5 minutes)
	@$(PY) -m bench.agent_starts

image: environment ## the one image, as a file for every engine: dist/halfcard.tar (Debian 12, no engine, no registry)
	@$(PY) -m deploy.image dist/halfcard.tar

release: environment ## wheel, image, its bill of materials, chart, manifests and hashes into dist; all of it made twice
	@$(PY) -m deploy.release dist
	@$(PY) -m deploy.release --check dist

chart: environment-dev ## write what the chart takes from the code, and the manifests rendered from it
	@$(PY) -m devcluster.build helm
	@$(PY) -m deploy.chart --helm "$$($(PY) -c 'from devcluster.build.binaries import program_path; print(program_path("helm"))')"

docs: environment-docs ## the pages as a site that needs no network: build/site
	@$(PY) docs/generate.py
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

lock: ## pin the newest packages (needs uv on PATH)
	@scripts/lock

clean: ## remove everything that make made
	@rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

environment:
	@scripts/environment runtime

environment-dev:
	@scripts/environment dev

environment-docs:
	@scripts/environment docs
