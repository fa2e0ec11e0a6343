"""kubelet's checkpoint in the formats of its versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from deviceplugin.kubelet.checkpoint import Checkpoint, read
from deviceplugin.kubelet.messages import CheckpointEntry
from halfcard import names

GPU: Final = names.NVIDIA_GPU
BOTH: Final = CheckpointEntry("a", "c", GPU, frozenset({"hc-0", "hc-1"}))


def written(ids: Any) -> bytes:
    entry = {"PodUID": "a", "ContainerName": "c", "ResourceName": GPU, "DeviceIDs": ids, "AllocResp": "Cg=="}
    return json.dumps({"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": {}}, "Checksum": 7}).encode()


READ: Final = {
    "by NUMA node": (written({"0": ["hc-0"], "1": ["hc-1"]}), (BOTH,)),
    "without NUMA nodes": (written({"-1": ["hc-0", "hc-1"]}), (BOTH,)),
    "as a list": (written(["hc-1", "hc-0"]), (BOTH,)),
    "nothing": (b'{"Data":{"PodDeviceEntries":null}}', ()),
    "another form": (b'{"PodDeviceEntries":[]}', None),
    "half a file": (written(["hc-0", "hc-1"])[:-20], None),
    "no text": (b"\xff\xfe", None),
}


@pytest.mark.parametrize(("content", "given"), READ.values(), ids=READ)
def test_only_a_valid_checkpoint_is_used(content: bytes, given: tuple[CheckpointEntry, ...] | None) -> None:
    assert read(content) == given


def test_a_checkpoint_may_be_missing_and_is_read_again_when_it_changes(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.entries() is None
    file = tmp_path / "kubelet_internal_checkpoint"
    file.write_bytes(written(["hc-0", "hc-1"]))
    assert checkpoint.entries() == checkpoint.entries() == (BOTH,)
    draft = tmp_path / "draft"
    draft.write_bytes(written(["hc-0", "hc-7"]))
    draft.rename(file)
    assert checkpoint.entries() == (BOTH._replace(ids=frozenset({"hc-0", "hc-7"})),)
    file.unlink()
    assert checkpoint.entries() is None
