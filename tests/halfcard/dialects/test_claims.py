"""The claims of every dialect's requests: the table of the design, read as those of a real pod."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from halfcard import names
from halfcard.claims import Claim, Part, memory_share, whole_cards
from halfcard.dialects import ALL, Dialect, Dialects
from halfcard.dialects.aliyun import Aliyun
from halfcard.dialects.dialect import MAX_AMOUNT
from halfcard.pod.requests import ContainerRequest, read_pod
from tests.builders import pod

DIALECTS: Final = Dialects()


def wish(words: dict[str, Any], dialects: Dialects = DIALECTS) -> ContainerRequest:
    (asked,) = read_pod(pod().asks(**words).read, dialects)
    return asked.request


CLAIMS: Final = {
    "tencent: a share": (
        {"core": 30, "memory": 20},
        Claim(1, 30, 5120, exclusive=False, distinct=False, dialect="tencent"),
    ),
    "tencent: the same as people write it": (
        {"core": "0.3", "memory": "5Gi"},
        Claim(1, 30, 5120, exclusive=False, distinct=False, dialect="tencent"),
    ),
    "tencent: the smallest share": ({"core": 1, "memory": 1}, memory_share(256, "tencent", cores_pct=1)),
    "tencent: the largest share": ({"core": 99, "memory": 1}, memory_share(256, "tencent", cores_pct=99)),
    "tencent: one card": ({"core": 100}, whole_cards(1, "tencent")),
    "tencent: two cards": (
        {"core": 200},
        Claim(2, None, None, exclusive=True, distinct=True, dialect="tencent"),
    ),
    "tencent: two cards with memory between them": (
        {"core": 200, "memory": 128},
        whole_cards(2, "tencent", memory_mib=16384),
    ),
    "tencent: memory that does not divide counts as more": (
        {"core": 300, "memory": 1},
        whole_cards(3, "tencent", memory_mib=86),
    ),
    "tuya's vcuda: a share": (
        {"tuya_core": 30, "tuya_memory": 20},
        memory_share(5120, "tuya-vcuda", cores_pct=30),
    ),
    "tuya's vcuda: memory alone, compute is free": ({"tuya_memory": 20}, memory_share(5120, "tuya-vcuda")),
    "tuya: two halves, of different cards": (
        {"sgpu": 2},
        Claim(2, None, None, exclusive=False, distinct=True, dialect="tuya", memory_pct=50, part=Part.HALF),
    ),
    "aliyun: memory": ({"gpu_mem": 3}, Claim(1, None, 3072, exclusive=False, distinct=False, dialect="aliyun")),
    "volcano: memory": (
        {"gpu_memory": 2048},
        Claim(1, None, 2048, exclusive=False, distinct=False, dialect="volcano"),
    ),
    "volcano: cards": ({"gpu_number": 2}, Claim(2, None, None, exclusive=True, distinct=True, dialect="volcano")),
    "nvidia: cards": ({"gpu": 2}, Claim(2, None, None, exclusive=True, distinct=True, dialect="nvidia")),
    "nvidia: a slot": (
        {"gpu_shared": 1},
        Claim(1, None, None, exclusive=False, distinct=False, dialect="nvidia", part=Part.SLICE),
    ),
    "hami: MiB and cores of each of two cards": (
        {"gpu": 2, "gpumem": 3000, "gpucores": 30},
        Claim(2, 30, 3000, exclusive=False, distinct=True, dialect="hami"),
    ),
    "hami: per cent of the memory": (
        {"gpu": 1, "gpumem_percentage": 50},
        Claim(1, None, None, exclusive=False, distinct=True, dialect="hami", memory_pct=50),
    ),
    "hami: all cores of a card keep others away": (
        {"gpu": 1, "gpumem": 3000, "gpucores": 100},
        Claim(1, 100, 3000, exclusive=True, distinct=True, dialect="hami"),
    ),
    "hami: memory without a number means one card": (
        {"gpumem": 3000},
        Claim(1, None, 3000, exclusive=False, distinct=True, dialect="hami"),
    ),
}


@pytest.mark.parametrize(("words", "claim"), CLAIMS.values(), ids=CLAIMS)
def test_claims_of_the_design_table(words: dict[str, Any], claim: Claim) -> None:
    assert wish(words).problems == ()
    assert wish(words).claim == claim


@pytest.mark.parametrize("words", [words for words, _ in CLAIMS.values()], ids=CLAIMS)
def test_a_claim_of_nothing_is_no_claim(words: dict[str, Any]) -> None:
    nothing = wish(dict.fromkeys(words, 0))
    assert (nothing.claim, nothing.problems, nothing.implied) == (None, (), ())


@pytest.mark.parametrize("words", [words for words, _ in CLAIMS.values()], ids=CLAIMS)
def test_a_disabled_dialect_reads_no_resources(words: dict[str, Any]) -> None:
    spoken = wish(words).dialect
    assert spoken is not None
    others = Dialects.named(dialect.name for dialect in ALL if dialect is not spoken)
    unheard = wish(words, others).claim
    assert unheard is None or unheard.dialect != spoken.name


def test_gpushare_nodes_may_count_in_mib() -> None:
    assert wish({"gpu_mem": 3000}, Dialects((Aliyun(unit_mib=1),))).claim == memory_share(3000, "aliyun")


def test_only_a_share_leaves_its_card_to_others() -> None:
    assert memory_share(256, "tencent").is_share
    assert not whole_cards(1, "tencent").is_share


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@settings(max_examples=40)
@given(data=st.data())
def test_amounts_that_break_no_rule_make_a_possible_claim(dialect: Dialect, data: st.DataObject) -> None:
    numbers = st.sampled_from([1, 2, 30, 99, 100]) | st.sampled_from([200, 1000, MAX_AMOUNT])
    asked = data.draw(st.dictionaries(st.sampled_from(sorted(dialect.resources)), numbers, min_size=1))
    assume(dialect.speaks(asked))
    assume(not list(dialect.check(asked, "resources")))
    claim = dialect.claim(asked | dict(dialect.implied(asked)))
    assert claim is not None
    assert claim.dialect == dialect.name
    assert claim.cards >= 1
    assert claim.cores_pct is None or 1 <= claim.cores_pct <= 100
    assert claim.memory_pct is None or 1 <= claim.memory_pct <= 100
    assert claim.memory_mib is None or claim.memory_mib >= 1
    assert claim.memory_mib is None or claim.memory_pct is None
    assert claim.distinct or claim.cards == 1 or names.NVIDIA_GPU_SHARED in asked
