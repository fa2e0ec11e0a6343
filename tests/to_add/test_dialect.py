"""A dialect is added by the steps of "To add": webhook, extender, agent, chart and pages know its words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from .made_up_dialect import RESOURCE, add_dialect
from .tree import Tree, copy_of_the_product, not_as_written

_POD: Final = """
apiVersion: v1
kind: Pod
metadata: {name: "%s", namespace: default}
spec: {containers: [{name: c, image: i, resources: {limits: {%s: %s}}}]}
"""
_NODE: Final = f"""
import asyncio
from tests.builders import pod
from tests.halfcard.placing.examples import node

ASKS = pod().asks(**{{"{RESOURCE}": 4}})
"""
_PLACED: Final = f"""{_NODE}
from tests.extender.bind.test_binder import Replica, manifest
from tests.extender.pod_server import serving_pods
from extender.scheduler_api.answer_cache import AnswerCache

async def main():
    with serving_pods() as server:
        server.put(manifest("p", ASKS))
        replica = Replica(server)
        replica.see_all()
        answers = AnswerCache(replica.state, replica.binder.rules.policy_of)
        print(answers.feasible(replica.state.pod("uid-p").demand).by_reason(["n1", "n2"]))
        await replica.bind("p")
        print(server.annotations("p")["halfcard.dev/placement"], replica.state.room("n1").left[0].mib)
        replica.close()

asyncio.run(main())
"""
_ON_THE_NODE: Final = f"""{_NODE}
from deviceplugin.advertise.supply import OfferRules, supply
from halfcard.dialects import Dialects
from halfcard.placing.room import empty_room
from settings.installation import Settings
from deviceplugin.allocate.container_identity import StartingContainer
from deviceplugin.allocate.grant import grant_of
from tests.deviceplugin.allocate.test_grant import FILES, placed

resources = Settings(node_resources=["{RESOURCE}"]).advertised_resources()
print(dict(supply(empty_room(node(2, 16384)), (), OfferRules(resources, Dialects())).ids))
case = placed(ASKS, ((1,),), node(2, 16384))
who = StartingContainer("team", "p", "{RESOURCE}", frozenset("abcd"), "containers-0")
print(grant_of(case, who, Dialects().by_name, FILES).variables["ACME_GPU"])
"""
_CHART: Final = """
from deploy.chart import guard_template, scheduler_template
from halfcard.dialects import Dialects
from halfcard.webhook_configurations import configurations

for text in (str(configurations(Dialects(), exempt=())), guard_template.template(), scheduler_template.file()):
    print("acme.example/gpu-gib" in text)
"""
_QUOTA: Final = f"""
from halfcard.dialects import Dialects
from halfcard.quantity import Quantity
from halfcard.quota.native_messages import spelled, units

print(spelled(units(Dialects())["{RESOURCE}"], Quantity.of(4)))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = copy_of_the_product(tmp_path_factory.mktemp("dialect"))
    add_dialect(tree)
    return tree


def test_these_are_the_steps_of_the_page(tree: Tree) -> None:
    assert not_as_written(tree, "A dialect") == set()


def test_the_webhook_admits_its_words_and_refuses_what_breaks_its_rules(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(
        "---".join(_POD % (amount, RESOURCE, amount) for amount in ("4", "2048", "1.5"))
    )
    done = tree.python("-m", "cli", "review", "-f", str(tmp_path / "pods.yaml"), "-o", "json")
    verdicts = {
        item["name"]: [problem["fix"] for problem in item["problems"]] for item in json.loads(done.stdout)["items"]
    }
    assert verdicts == {"4": [], "2048": ["use fewer GiB"], "1.5": ["use 2"]}


def test_the_extender_places_and_binds_a_pod_in_its_words(tree: Tree) -> None:
    fits, bound = tree.printed(_PLACED).splitlines()
    assert fits == "{'': ('n1', 'n2')}"
    assert '"containers-0":["n1-0"]' in bound


def test_the_agent_offers_its_resource_and_sets_its_variable(tree: Tree) -> None:
    assert tree.printed(_ON_THE_NODE).splitlines() == [f"{{'{RESOURCE}': 32}}", "4 GiB on card 1"]


def test_its_pods_reach_the_webhook_the_static_guard_and_the_extender(tree: Tree) -> None:
    assert tree.printed(_CHART).splitlines() == ["True", "True", "True"]


def test_messages_about_quotas_state_its_amounts_in_gib(tree: Tree) -> None:
    assert tree.printed(_QUOTA) == "4 GiB"


def test_the_page_of_dialects_shows_its_example(tree: Tree) -> None:
    table = tree.printed("from docs.fragments import dialects; print(dialects())")
    assert f"| `acme` | `{RESOURCE}: 4` | 1 card, 4096 MiB |" in table
