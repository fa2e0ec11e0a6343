from __future__ import annotations

import pytest

from halfcard import names
from halfcard.pod.owned_annotations import forged, is_owned


@pytest.mark.parametrize(
    "key",
    [
        names.PLACEMENT,
        "tencent.com/predicate-gpu-idx-0",
        "gpu.example.com/predicate-node",
        "tuya.com/gpu-assigned",
        names.ALIYUN_INDEX,
        names.VOLCANO_INDEX,
        "hami.io/vgpu-node",
    ],
)
def test_records_belong_to_schedulers(key: str) -> None:
    assert is_owned(key)


@pytest.mark.parametrize(
    "key", ["", "team", "ask.halfcard.dev/model", "tencent.com/vcuda-core-limit", "/predicate-node"]
)
def test_other_annotations_are_not_owned(key: str) -> None:
    assert not is_owned(key)


def test_without_a_node_a_record_is_forged_except_for_a_fence() -> None:
    annotations = [
        names.FENCE,
        names.RECONSIDER,
        names.CORE_LIMIT_DEFAULTED,
        "team",
        names.PLACEMENT,
        "tuya.com/gpu-assigned",
    ]
    assert forged(annotations) == [names.PLACEMENT, "tuya.com/gpu-assigned"]
