"""What containers hold, from all who know of it."""

from __future__ import annotations

from deviceplugin.kubelet.pod_resources import Held
from deviceplugin.offering import ids_by_resource
from halfcard import names


def test_ids_that_kubelet_lists_and_those_that_it_does_not_list_are_held_if_they_are_ours() -> None:
    listed = [
        Held("team", "one", "c", names.VCUDA_CORE, frozenset({"hc-0", "GPU-1::0"})),
        Held("team", "two", "c", names.VCUDA_CORE, frozenset({"hc-1"})),
        Held("team", "two", "c", "example.com/nic", frozenset({"eth1"})),
    ]
    unlisted = {names.VCUDA_CORE: {"hc-1", "hc-9"}, names.TUYA_SGPU: {"hc-0"}, names.NVIDIA_GPU: {"GPU-2"}}
    assert ids_by_resource(listed, unlisted) == {
        names.VCUDA_CORE: {"hc-0", "hc-1", "hc-9"},
        names.TUYA_SGPU: {"hc-0"},
    }
