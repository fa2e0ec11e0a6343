"""A made-up system: memory in GiB, with a variable and, where wanted, a record of its own."""

from __future__ import annotations

from typing import Final

from .tree import Tree

RESOURCE: Final = "acme.example/gpu-gib"
CARDS: Final = "acme.example/cards"

_MODULE: Final = '''"""Acme's words: memory of one card in GiB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .. import names
from ..cards import Card, CardLimit
from ..claims import MEMORY, Claim, Unit, memory_share
from ..problems import MEMORY_TOO_LARGE, Problem
from .dialect import Dialect, at
from .record import PeerRecord, PlacedPod, indices, one_list


class Acme(Dialect):
    name = "acme"
    units: Final = {names.ACME_GIB: Unit(MEMORY, 1024)}
    examples = ({names.ACME_GIB: 4},)

    def check(self, amounts: Mapping[str, int], where: str) -> Iterator[Problem]:
        if amounts[names.ACME_GIB] > 1024:
            yield MEMORY_TOO_LARGE.broken(at(where, names.ACME_GIB), amounts[names.ACME_GIB], "use fewer GiB")

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        return memory_share(1024 * amounts[names.ACME_GIB], self.name) if amounts[names.ACME_GIB] else None

    def variables(self, limits: Sequence[CardLimit], cards: Sequence[Card], pod_mib: int) -> dict[str, str]:
        return {names.ACME_VARIABLE: f"{pod_mib // 1024} GiB on card {cards[0].index}"}
'''
_RECORD: Final = """
    record = PeerRecord(
        "Acme",
        one_list(names.ACME_CARDS, "acme"),
        lambda placed, wanted, now_ns: {
            names.ACME_CARDS: indices(card for number in wanted for card in placed.cards(number)),
            names.ACME_TIME: str(now_ns),
        },
        names.ACME_TIME,
    )
"""
_NAMES: Final = f"""
ACME_GIB: Final = "{RESOURCE}"
ACME_VARIABLE: Final = "ACME_GPU"
SLOT: Final ="""
_RECORD_NAMES: Final = f"""
ACME_CARDS: Final = "{CARDS}"
ACME_TIME: Final = "acme.example/cards-time"
OWNED_SUFFIXES: Final ="""
_TABLE: Final = "halfcard/dialects/__init__.py"


def add_dialect(tree: Tree) -> None:
    tree.add("halfcard/dialects/acme.py", _MODULE)
    tree.edit(_TABLE, "from .aliyun import Aliyun\n", "from .acme import Acme\nfrom .aliyun import Aliyun\n")
    tree.edit(_TABLE, "    Hami(),\n", "    Hami(),\n    Acme(),\n")
    tree.edit("halfcard/names.py", "\nSLOT: Final =", _NAMES)


def add_record(tree: Tree) -> None:
    tree.edit("halfcard/dialects/acme.py", "\n    def check", f"{_RECORD}\n    def check")
    tree.edit("halfcard/names.py", "\nOWNED_SUFFIXES: Final =", _RECORD_NAMES)
    tree.edit("halfcard/names.py", '    "volcano.sh/gpu-index",\n', f'    "volcano.sh/gpu-index",\n    "{CARDS}",\n')
    allowed = "k.startsWith('volcano.sh/gpu-index')"
    policy = "deploy/chart/halfcard/rbac/agent-own-node.yaml"
    tree.edit(policy, allowed, f"{allowed} || k.startsWith('{CARDS}')")
