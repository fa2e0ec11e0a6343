"""A doctor check is added by the steps of "To add": `halfcard doctor` reports its finding, and the page lists it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.cli.api_stand_in import api_server
from tests.cli.test_doctor import NODE, healthy, judged

from .tree import ROOT, Tree, copy_of_the_product

_MODULE: Final = "cli/diagnosis/nodes/agents.py"
_LOOK: Final = """
def _cordoned(snapshot: Snapshot) -> Iterator[FoundFault]:
    for name in snapshot.cordoned:
        yield FoundFault(f"node {name}", "is cordoned", "uncordon it", f"kubectl uncordon {name}")


CHECKS"""
_ROW: Final = """CHECKS: Final[tuple[Check, ...]] = (
    Check("node-cordoned", BROKEN, "no node with cards is cordoned", "No pod is placed there.", _cordoned),
"""
_FAULT: Final = '''] = {
    "a node is cordoned": (replace(HEALTHY, cordoned=("gpu-1",)), "node-cordoned", "gpu-1: is cordoned"),
    "no configuration is there"'''
_TESTS: Final = (
    "__init__.py",
    "builders.py",
    "conftest.py",
    "cli/__init__.py",
    "cli/command.py",
    "cli/diagnosis",
    "certs",
)
_PAGE: Final = "from docs.fragments import checks; print(checks())"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = copy_of_the_product(tmp_path_factory.mktemp("check"))
    _copy_tests_and_pages(tree)
    tree.edit(_MODULE, "\nCHECKS", _LOOK)
    tree.edit(_MODULE, "CHECKS: Final[tuple[Check, ...]] = (\n", _ROW)
    tree.edit(
        "cli/diagnosis/snapshot.py",
        "    counted_pods: int = 0\n",
        "    counted_pods: int = 0\n    cordoned: tuple[str, ...] = ()\n",
    )
    tree.edit(
        "cli/inputs/survey.py",
        '        "counted_pods": len(pods),\n',
        '        "counted_pods": len(pods),\n'
        '        "cordoned": tuple(each["metadata"]["name"] for each in nodes if each["spec"].get("unschedulable")),\n',
    )
    tree.edit("tests/cli/diagnosis/test_checks.py", '] = {\n    "no configuration is there"', _FAULT)
    return tree


def _copy_tests_and_pages(tree: Tree) -> None:
    (tree.root / "tests" / "cli").mkdir(parents=True)
    for name in _TESTS:
        source, copy = ROOT / "tests" / name, tree.root / "tests" / name
        shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
    shutil.copytree(ROOT / "docs", tree.root / "docs")
    shutil.copy(ROOT / "pyproject.toml", tree.root)


def test_the_doctor_reports_what_it_finds_in_a_cluster(tree: Tree, tmp_path: Path) -> None:
    cluster = healthy() | {"/api/v1/nodes": [NODE | {"spec": {"unschedulable": True}}]}
    with api_server(tmp_path, cluster, judged) as kubeconfig:
        done = tree.python("-m", "cli", "doctor", "--kubeconfig", str(kubeconfig))
    assert (done.returncode, done.stderr) == (1, "")
    assert "broken: node-cordoned" in done.stdout
    assert "kubectl uncordon gpu-1" in done.stdout


def test_the_tests_of_all_checks_include_it(tree: Tree) -> None:
    done = tree.python("-m", "pytest", "-q", "-n0", "tests/cli/diagnosis/test_checks.py", "-k", "cordoned or every")
    assert done.returncode == 0, done.stdout


def test_the_generated_page_lists_it(tree: Tree) -> None:
    done = tree.python("-c", _PAGE)
    assert done.returncode == 0, done.stderr
    assert "node-cordoned" in done.stdout
