"""A peer record is added by the steps of "To add": it is written at bind, read back, and protected."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from .made_up_dialect import CARDS, RESOURCE, add_dialect, add_record
from .tree import Tree, copy_of_the_product, not_as_written

_BOUND: Final = f"""
import asyncio
from extender.explain.bound import explain_bound
from halfcard.placing.pod_facts import read_facts
from tests.builders import pod
from tests.extender.bind.test_binder import Replica, manifest
from tests.extender.pod_server import serving_pods

async def main():
    with serving_pods() as server:
        server.put(manifest("p", pod().asks(**{{"{RESOURCE}": 4}})))
        replica = Replica(server)
        replica.see_all()
        await replica.bind("p")
        print(server.annotations("p")["{CARDS}"], server.annotations("p")["acme.example/cards-time"])
        server.change("p", **{{"halfcard.dev/placement": "", "{CARDS}": "1"}})
        replica.see_all()
        found = explain_bound(replica.state, replica.state.pod("uid-p"))
        print(found.recorded_by, found.since, found.grants[0].cards[0].name)
        replica.close()

asyncio.run(main())
"""
_REGISTERED: Final = """
from halfcard.dialects import Dialects
from halfcard.webhook_configurations import configurations

print(configurations(Dialects(), exempt=()))
"""
_FORGED: Final = f"""
apiVersion: v1
kind: Pod
metadata: {{name: p, namespace: default, annotations: {{{CARDS}: "0"}}}}
spec: {{containers: [{{name: c, image: i, resources: {{limits: {{{RESOURCE}: 4}}}}}}]}}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = copy_of_the_product(tmp_path_factory.mktemp("record"))
    add_dialect(tree)
    add_record(tree)
    return tree


def test_these_are_the_steps_of_the_page(tree: Tree) -> None:
    assert not_as_written(tree, "A dialect", "A peer record") == set()


def test_the_extender_writes_it_at_bind_and_counts_the_pod_by_it(tree: Tree) -> None:
    assert tree.printed(_BOUND).splitlines() == ["0 1", "Acme 1970-01-01T00:00:00Z n1-1"]


def test_the_webhook_refuses_a_pod_that_brings_one(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "forged.yaml").write_text(_FORGED)
    done = tree.python("-m", "cli", "review", "-f", str(tmp_path / "forged.yaml"))
    assert done.returncode == 1
    assert f'annotations["{CARDS}"]' in done.stdout


def test_the_webhook_is_asked_about_every_change_of_one(tree: Tree) -> None:
    assert f"t.contains(' {CARDS}')" in tree.printed(_REGISTERED)
