# Every target creates what it needs: Python 3.11 or newer and make are enough.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PY := .venv/bin/python
export PYTHON

.PHONY: help demo test lint format bench bench-extender bench-agent bench-isolation bench-packing fuzz cluster-tools \
	test-isolation test-isolation-arm64 test-card test-cluster test-node test-oldest soak load bench-cluster \
	bench-quota bench-starts lock clean environment environment-dev image release chart docs test-upgrade \
	environment-docs

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: environment ## good and bad pods against the real service, step by step (under 20 seconds)
	@$(PY) -m cli demo

test: environment-dev ## run the tests that need no cluster
	@$(PY) -m pytest tests --ignore=tests/cluster --ignore=tests/node --ignore=tests/isolation --numprocesses=auto --maxprocesses=8 --dist=loadfile

test-isolation: environment-dev ## test the isolation library, with kills at random moments (Linux, gcc)
	@$(PY) -m pytest tests/isolation --timeout=240  # the first run fetches packages

test-isolation-arm64: environment-dev ## test the isolation library for arm64, in an emulator (Debian; installs both)
	@scripts/system-packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
	@$(PY) -m pytest tests/isolation/arm64.py

test-card: environment-dev ## try the isolation library with PyTorch and vLLM on an NVIDIA card (installs 10 GB in build)
	@$(PY) -m tests.card

lint: environment-dev ## check style, format, types and layers
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@.venv/bin/lint-imports

format: environment-dev ## format the code
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

bench: environment-dev ## time of a decision, as a ratio to a baseline of the same run
	@$(PY) -m bench

bench-extender: environment-dev ## time of an answer to kube-scheduler, as a ratio to a baseline of the same run
	@$(PY) -m bench.extender

bench-agent: environment-dev ## cost of the node agent with 200 pods, with baselines of the same run
	@$(PY) -m bench.agent

bench-isolation: environment-dev ## what the isolation library adds to a call of the driver, in nanoseconds (Linux, gcc)
	@$(PY) -m bench.isolation

bench-packing: environment-dev ## utilisation of a simulated cluster by policy; HALFCARD_OPENB=DIR is the folder of the openb trace
	@$(PY) -m bench.packing

fuzz: environment-dev ## 100,000 malformed requests: no 5xx, no hang, no memory growth
	@$(PY) -m bench.fuzz

cluster-tools: environment-dev ## build a real Kubernetes from Go modules, once (about 9 minutes and 9 GB)
	@$(PY) -m devcluster.build control-plane node kwok helm containerd

test-cluster: cluster-tools ## test webhook and extender on a real control plane (Linux, root)
	@$(PY) -m pytest tests/cluster

test-node: cluster-tools ## test the node agent with a real kubelet and containerd (Linux, root)
	@$(PY) -m pytest tests/node

test-oldest: environment-dev ## test-cluster on the oldest supported Kubernetes (10 more minutes to build)
	@HALFCARD_KUBERNETES=1.34 $(PY) -m devcluster.build control-plane node kwok helm containerd
	@HALFCARD_KUBERNETES=1.34 $(PY) -m pytest tests/cluster

test-upgrade: cluster-tools ## upgrade from the newest tag, or the commit HALFCARD_UPGRADE_FROM, to this tree, under load
	@$(PY) -m pytest tests/node/upgrade.py

soak: cluster-tools ## load and failures of replicas, quotas, certificates and placement for 25 minutes
	@$(PY) -m tests.cluster.soak --minutes 10
	@HALFCARD_QUOTA_ROUNDS=5 HALFCARD_QUOTA_CREATES=10000 $(PY) -m pytest -q -s tests/cluster/test_gpu_quota_burst.py
	@HALFCARD_CERTS_CREATES=25000 $(PY) -m pytest -q -s tests/cluster/test_certs.py -k "rotation or replaced_under_load"
	@HALFCARD_CHURN_PODS=2000 $(PY) -m pytest -q -s tests/cluster/test_extender_churn.py

load: cluster-tools ## place 20,000 pods on 5,000 nodes with a real scheduler
	@$(PY) -m tests.cluster.load --nodes 5000 --pods 20000

bench-cluster: cluster-tools ## pods created per second, against webhooks that admit all; CPU of the match conditions
	@$(PY) -m bench.pods_per_second
	@$(PY) -m bench.match_conditions

bench-quota: cluster-tools ## pods created per second with one GpuQuota, compared with native quota
	@$(PY) -m bench.quota_per_second

bench-starts: cluster-tools ## start time of GPU pods, compared with pods without GPUs (Linux, root, 5 minutes)
	@$(PY) -m bench.agent_starts

image: environment ## build the image dist/halfcard.tar, for every container engine (on Debian 12; needs no engine or registry)
	@$(PY) -m deploy.image dist/halfcard.tar

release: environment ## write wheel, image, bill of materials, chart, manifests and hashes to dist, built twice
	@$(PY) -m deploy.release dist
	@$(PY) -m deploy.release --check dist

chart: environment-dev ## write the generated parts of the chart, and the rendered manifests (builds helm once: a minute)
	@$(PY) -m devcluster.build helm
	@$(PY) -m deploy.chart --helm "$$($(PY) -c 'from devcluster.build.binaries import program_path; print(program_path("helm"))')"

docs: environment-docs ## build these pages as a site that needs no network: build/site
	@$(PY) docs/generate.py
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict
	@echo "Open build/site/index.html in a browser. For its search: $(PY) -m http.server --directory build/site"

lock: ## pin the newest packages (needs uv on PATH)
	@scripts/lock

clean: ## remove everything that make created
	@rm -rf .venv build isolation/build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

environment:
	@scripts/environment runtime

environment-dev:
	@scripts/environment dev

environment-docs:
	@scripts/environment docs
