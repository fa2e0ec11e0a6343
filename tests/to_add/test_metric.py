"""A metric is added by the steps of "To add": the webhook serves it, and the page of metrics lists it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from .tree import Tree, copy_of_the_product, not_as_written

_BEFORE: Final = "        self.in_flight = 0\n"
_METRIC: Final = """        self._by_operation = Counter(
            "halfcard_admission_operations", "Reviews, by operation.", ["operation"], registry=registry
        )
"""
_METHOD: Final = """
    def operation(self, operation: str) -> None:
        self._by_operation.labels(operation).inc()
"""
_SCRAPE: Final = """
import sys, urllib.request
from pathlib import Path
from cli.demo_scenes.api_server import ApiServer
from tests.cli.command import service

pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": []}}
with service(Path(%r)) as running:
    with ApiServer(running.ready["admission"], running.ready["ca"]) as server:
        server.create(pod, user="dana")
    with urllib.request.urlopen(f"{running.ready['status']}/metrics") as answer:
        print(answer.read().decode())
"""
_ROW: Final = "| `halfcard_admission_operations_total` | counter | `operation` | Reviews, by operation. |"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = copy_of_the_product(tmp_path_factory.mktemp("metric"))
    tree.copy("docs", "tests/__init__.py", "tests/cli/__init__.py", "tests/cli/command.py")
    tree.edit("admission/metrics.py", _BEFORE, _METRIC + _BEFORE)
    tree.append("admission/metrics.py", _METHOD)
    call = "        self.metrics.decided(self.path, verdict, seconds)\n"
    tree.edit("admission/endpoint.py", call, f"{call}        self.metrics.operation(review.request.operation)\n")
    sample = "    counted.failed(400)\n"
    tree.edit("docs/fragments.py", sample, f'{sample}    counted.operation("CREATE")\n')
    return tree


def test_these_are_the_steps_of_the_page(tree: Tree) -> None:
    assert not_as_written(tree, "A metric") == set()


def test_the_webhook_serves_it(tree: Tree, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    assert 'halfcard_admission_operations_total{operation="CREATE"} 2.0' in tree.printed(_SCRAPE % str(state))


def test_the_page_of_metrics_lists_it(tree: Tree) -> None:
    assert _ROW in tree.printed("from docs.fragments import metrics; print(metrics())")
