"""A rule is added by the steps of "To add": pods that break it are refused, and page, examples and settings know it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from .tree import Tree, copy_of_the_product, not_as_written

_ROW: Final = """MOST_CARDS = Rule(
    "HC099",
    _DENY,
    "a pod may ask for at most 8 cards",
    "No node has more.",
)

"""
_FUNCTION: Final = """

def node_has_so_many_cards(subject: Subject) -> Iterator[Problem]:
    cards = sum(claim.cards for claim in subject.claims)
    if cards > 8:
        yield MOST_CARDS.broken("spec.containers", f"{cards} cards", "use several pods")
"""
_SCHEMA: Final = "from deploy.chart import made; made.SCHEMA.write_text(made.from_code(made.SCHEMA.read_text()))"
"""What `make chart` writes without helm."""
_MANIFEST: Final = """apiVersion: v1
kind: Pod
metadata: {name: nine-cards}
spec: {containers: [{name: app, image: cuda, resources: {limits: {nvidia.com/gpu: 9}}}]}
"""
_REFUSED: Final = 'spec.containers: got "9 cards"; a pod may ask for at most 8 cards; use several pods [HC099]'
_MANIFEST_AT: Final = "deploy/examples/mistakes/manifests/amounts/99-nine-cards.yaml"
_TESTS: Final = ("tests/halfcard/test_problems.py", "tests/deploy/test_examples.py")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = copy_of_the_product(tmp_path_factory.mktemp("rule"))
    tree.copy("docs", "tests/__init__.py", "tests/halfcard/__init__.py", "tests/deploy", *_TESTS[:1])
    tree.edit("halfcard/problems.py", "RULES: Final = {\n", f"{_ROW}RULES: Final = {{\n")
    tree.edit(_TESTS[0], '    "HC045": "LIBRARY_PATH",\n', '    "HC045": "LIBRARY_PATH",\n    "HC099": "MOST_CARDS",\n')
    tree.edit("admission/rules/requests.py", "    MEMORY_TOO_LARGE,\n", "    MEMORY_TOO_LARGE,\n    MOST_CARDS,\n")
    tree.append("admission/rules/requests.py", _FUNCTION)
    tree.edit(
        "admission/review.py",
        "    requests.core_limit_is_valid,\n",
        "    requests.core_limit_is_valid,\n    requests.node_has_so_many_cards,\n",
    )
    tree.add(_MANIFEST_AT, _MANIFEST)
    tree.edit(
        _TESTS[1],
        '    "mistakes": {\n',
        '    "mistakes": {\n        "Pod default/nine-cards": "refused HC048 HC099",\n',
    )
    for arguments in (("-c", _SCHEMA), ("docs/generate.py", "docs/problems.md"), ("-m", "tests.deploy.refresh")):
        done = tree.python(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
    return tree


def test_the_steps_are_those_of_the_page(tree: Tree) -> None:
    assert not not_as_written(tree, "A rule")


def test_a_pod_that_breaks_it_is_refused_with_its_code(tree: Tree) -> None:
    done = tree.python("-m", "cli", "review", "-f", _MANIFEST_AT)
    assert (done.returncode, done.stderr) == (1, "")
    assert _REFUSED in " ".join(done.stdout.split())


def test_the_settings_may_make_it_a_warning(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("severities: {HC099: warn}")
    done = tree.python("-m", "cli", "review", "-f", _MANIFEST_AT, "--settings", str(tmp_path / "settings.yaml"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "Warning: [HC099]" in done.stdout


def test_the_chart_accepts_its_code(tree: Tree) -> None:
    assert "HC099" in (tree.root / "deploy/chart/halfcard/values.schema.json").read_text()


def test_the_page_of_problems_lists_it(tree: Tree) -> None:
    page = (tree.root / "docs" / "problems.md").read_text()
    assert "| [HC099](#hc099) | deny | a pod may ask for at most 8 cards |" in page
    assert "### HC099\n\n**A pod may ask for at most 8 cards.** No node has more.\n" in page


def test_the_tests_of_rules_and_examples_pass(tree: Tree) -> None:
    done = tree.python("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *_TESTS, "-k", "code or table or mistake")
    assert done.returncode == 0, done.stdout
