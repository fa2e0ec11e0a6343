"""kubelet's checkpoint: asked for what its socket does not list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from deviceplugin.checkpoint import Checkpoint, held, holders
from halfcard import names

IDS: Final = frozenset({"hc-0", "hc-1"})


def written(*entries: tuple[str, str, Any]) -> bytes:
    found = [
        {"PodUID": uid, "ContainerName": "c", "ResourceName": resource, "DeviceIDs": ids, "AllocResp": "Cg=="}
        for uid, resource, ids in entries
    ]
    return json.dumps({"Data": {"PodDeviceEntries": found, "RegisteredDevices": {}}, "Checksum": 7}).encode()


GPU: Final = names.NVIDIA_GPU
FOUND: Final = {
    "by NUMA node": (written(("a", GPU, {"0": ["hc-0"], "1": ["hc-1"]}), ("b", GPU, {"-1": ["hc-2"]})), {"a"}),
    "as a list": (written(("a", GPU, ["hc-1", "hc-0"])), {"a"}),
    "two containers of one pod": (written(("a", GPU, ["hc-1", "hc-0"]), ("a", GPU, ["hc-1", "hc-0"])), {"a"}),
    "two pods": (written(("a", GPU, ["hc-1", "hc-0"]), ("b", GPU, ["hc-1", "hc-0"])), {"a", "b"}),
    "one of these twice": (written(("a", GPU, ["hc-1", "hc-0"]), ("b", GPU, ["hc-1", "hc-2"])), {"a"}),
    "more than these": (written(("a", GPU, ["hc-0", "hc-1", "hc-2"])), set()),
    "another resource": (written(("a", names.VCUDA_CORE, ["hc-0", "hc-1"])), set()),
    "nothing": (b'{"Data":{"PodDeviceEntries":null}}', set()),
    "another form": (b'{"PodDeviceEntries":[]}', set()),
    "half a file": (written(("a", GPU, ["hc-0", "hc-1"]))[:-20], set()),
    "no text": (b"\xff\xfe", set()),
}


@pytest.mark.parametrize(("content", "uids"), FOUND.values(), ids=FOUND)
def test_who_holds_exactly_these_ids_is_named(content: bytes, uids: set[str]) -> None:
    assert holders(content, GPU, IDS) == uids


def test_it_is_in_kubelets_folder_and_may_be_missing(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.holders(GPU, IDS) == set()
    (tmp_path / "kubelet_internal_checkpoint").write_bytes(written(("a", GPU, ["hc-1", "hc-0"])))
    assert checkpoint.holders(GPU, IDS) == {"a"}


def test_what_living_pods_hold_is_found_by_resource() -> None:
    content = written(
        ("a", GPU, {"0": ["hc-0"], "1": ["hc-1"]}),
        ("b", GPU, ["hc-2"]),
        ("b", names.VCUDA_CORE, ["hc-0"]),
        ("gone", GPU, ["hc-7"]),
    )
    assert held(content, {"a", "b"}) == {GPU: {"hc-0", "hc-1", "hc-2"}, names.VCUDA_CORE: {"hc-0"}}
    assert held(b"\xff", {"a"}) == {}
