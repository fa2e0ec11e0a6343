"""Shows what a container with a share finds, by calling the node agent's own code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from deviceplugin.allocate.assignment import choose_share
from deviceplugin.allocate.container_identity import StartingContainer
from deviceplugin.allocate.grant import Grant, PodOnCards, as_file, grant_of
from deviceplugin.inject.card_files import CardFiles, own_edits
from halfcard import names
from halfcard.cards import Card, Node
from halfcard.dialects import Dialects
from halfcard.isolation.holding import LIBRARY
from halfcard.placing.pod_facts import read_facts
from halfcard.pod.stored_pod import StoredPod

_CORES: Final = "30"
_UNITS: Final = "20"
_CEILING: Final = "50"
_NODE: Final = Node("gpu1", (Card(2, "Tesla T4", 15109, "GPU-8f3b2c1d-5a47-4e0e-9c7e-2f5d1b6a9e31"),))
_POD: Final = {
    "metadata": {
        "name": "train-0",
        "namespace": "team-a",
        "uid": "0d0e2a3c-5f7c-4d38-9a53-6a4f6d0a9f11",
        "annotations": {names.TENCENT + names.CORE_LIMIT_SUFFIX: _CEILING},
    },
    "spec": {
        "nodeName": _NODE.name,
        "containers": [
            {"name": "main", "resources": {"limits": {names.VCUDA_CORE: _CORES, names.VCUDA_MEMORY: _UNITS}}}
        ],
    },
}


def container() -> str:
    """Returns the container's variables, device files and limits, as a shell in it would print them."""
    grant = _grant()
    files = own_edits(Path("/dev"), [card.index for card in grant.cards], exists=lambda _: True)["deviceNodes"]
    lines = [
        (
            f"# {names.VCUDA_CORE}: {_CORES}, {names.VCUDA_MEMORY}: {_UNITS}, and the annotation "
            f"{names.TENCENT}{names.CORE_LIMIT_SUFFIX}: {_CEILING}"
        ),
        "$ env | grep -E '^(NVIDIA|HALFCARD|CUDA)_' | sort",
        *sorted(f"{name}={value}" for name, value in grant.variables.items()),
        "$ ls /dev/nvidia*",
        *sorted(each["path"] for each in files),
        f"$ cat {names.LIMITS_FILE}",
        as_file(msgspec.structs.replace(grant.limits, held_by=LIBRARY)).decode().rstrip(),
    ]
    return "\n".join(["```text", *lines, "```"])


def _grant() -> Grant:
    pod = msgspec.convert(_POD, StoredPod)
    facts = read_facts(pod, Dialects())
    who = StartingContainer(facts.namespace, facts.name, names.VCUDA_CORE, _ids(), "main")
    on_cards = PodOnCards(facts, pod.annotations, _NODE, choose_share(facts, _NODE, (), ()))
    return grant_of(on_cards, who, Dialects().by_name, _FILES)


def _ids() -> frozenset[str]:
    return frozenset(f"hc-{number}" for number in range(int(_CORES)))


_FILES: Final = CardFiles(Path("/dev"), list, are_made_up=True)
