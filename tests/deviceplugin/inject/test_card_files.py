"""NVIDIA's own descriptions: found by uuid or by the card's file, read again when they change."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import structs

from deviceplugin.inject.card_files import CardFiles, Description, NvidiaDescriptions, edits_of
from deviceplugin.kubelet.messages import RefusedError
from halfcard.cards import Card

CARDS: Final = [Card(index, "A10", 22016, f"GPU-{index}") for index in range(3)]
COMMON: Final[dict[str, Any]] = {
    "env": ["NVIDIA_VISIBLE_DEVICES=void"],
    "deviceNodes": [{"path": "/dev/nvidiactl"}],
    "hooks": [{"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook"}],
}


def device(name: str, minor: int) -> dict[str, Any]:
    return {"name": name, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{minor}"}]}}


def described(*devices: dict[str, Any], version: str = "0.5.0", kind: str = "nvidia.com/gpu") -> Description:
    found = {"cdiVersion": version, "kind": kind, "devices": list(devices), "containerEdits": COMMON}
    return msgspec.convert(found, Description)


ALL: Final = {
    "name": "all",
    "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{minor}"} for minor in range(3)]},
}


@pytest.mark.parametrize(
    "description",
    [
        described(device("GPU-0", 0), device("GPU-1", 1), device("GPU-2", 2), ALL),
        described(device("2", 0), device("0", 1), device("1", 2), ALL),
    ],
    ids=["by uuid", "by index, which is another number than the driver's"],
)
def test_a_card_has_the_edits_of_its_device_and_the_common_ones(description: Description) -> None:
    found = edits_of([description], [CARDS[0], CARDS[2]])
    assert found is not None
    assert [node["path"] for node in found.edits["deviceNodes"]] == ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia2"]
    assert found.edits["hooks"] == COMMON["hooks"]


def test_one_card_without_a_description_disables_nvidias_edits() -> None:
    assert edits_of([described(device("GPU-0", 0), ALL)], [CARDS[0], CARDS[1]]) is None
    assert edits_of([described(device("GPU-0", 0), kind="nvidia.com/mig")], [CARDS[0]]) is None
    assert edits_of([], [CARDS[0]]) is None


@pytest.mark.parametrize(("theirs", "ours"), [("0.3.0", "0.6.0"), ("0.7.0", "0.7.0"), ("0.10.0", "0.10.0")])
def test_the_cdi_version_allows_nvidias_edits_and_annotations(theirs: str, ours: str) -> None:
    found = edits_of([described(device("GPU-0", 0), version=theirs)], [CARDS[0]])
    assert found is not None and found.version == ours


def test_descriptions_are_read_in_both_forms_and_read_again_when_they_change(tmp_path: Path) -> None:
    read = NvidiaDescriptions([tmp_path, tmp_path / "missing"])
    (tmp_path / "nvidia.yaml").write_text("cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: GPU-0\n")
    (tmp_path / "other.json").write_text(json.dumps({"kind": "example.com/x", "devices": []}))
    (tmp_path / "halfcard.dev-slot_a.json").write_text("{}")
    (tmp_path / "spoiled.yaml").write_text("kind: [")
    (tmp_path / "draft.tmp").write_text("kind: nvidia.com/gpu")
    assert sorted(found.kind for found in read()) == ["example.com/x", "nvidia.com/gpu"]
    first = read()
    (tmp_path / "nvidia.yaml").write_text("kind: nvidia.com/gpu\ndevices:\n- name: GPU-0\n- name: GPU-1\n")
    os.utime(tmp_path / "nvidia.yaml", ns=(1, 1))
    assert len(read()[0].devices) == 2
    assert read()[1] is first[1]


CUDA: Final = ("nvidiactl", "nvidia-uvm")
MISSING: Final = {
    "nvidia1": "nvidia-modprobe -c 1",
    "nvidiactl": "nvidia-modprobe -c 255",
    "nvidia-uvm": "nvidia-modprobe -u -c 0",
}


def test_without_descriptions_a_card_has_its_files(tmp_path: Path) -> None:
    for name in ("nvidia0", *CUDA):
        (tmp_path / name).touch()
    found = CardFiles(tmp_path, list)([CARDS[0]])
    assert found.edits["deviceNodes"] == [
        {"path": f"/dev/{name}", "hostPath": str(tmp_path / name)} for name in ("nvidia0", *CUDA)
    ]


@pytest.mark.parametrize(("name", "command"), MISSING.items())
def test_a_container_does_not_start_if_a_device_file_is_missing(tmp_path: Path, name: str, command: str) -> None:
    for other in {"nvidia1", *CUDA} - {name}:
        (tmp_path / other).touch()
    said = f"/{name} does not exist, and CUDA needs it; load the driver, or run {command}; kubelet tries again"
    with pytest.raises(RefusedError, match=said):
        CardFiles(tmp_path, list, kernel_devices=kernel(tmp_path, "nvidia-caps"))([CARDS[1]])


def test_nvidia_uvm_may_exist_on_the_node_and_not_in_the_agents_container(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidiactl"):
        (tmp_path / name).touch()
    files = CardFiles(tmp_path, list, kernel_devices=kernel(tmp_path, "nvidia-uvm"))
    assert {"path": "/dev/nvidia-uvm", "hostPath": str(tmp_path / "nvidia-uvm")} in files([CARDS[0]]).edits[
        "deviceNodes"
    ]


def kernel(folder: Path, driver: str) -> Path:
    """The kernel's list of drivers."""
    file = folder / "devices"
    file.write_text(f"Character devices:\n  1 mem\n195 nvidia\n511 {driver}\n\nBlock devices:\n259 blkext\n")
    return file


def test_a_container_does_not_start_by_a_description_without_a_file_that_cuda_needs(tmp_path: Path) -> None:
    old = {**COMMON, "deviceNodes": [{"path": "/dev/nvidiactl"}]}
    description = structs.replace(described(device("GPU-0", 0)), edits=old)
    said = "does not name /dev/nvidia-uvm, and CUDA needs it.*run nvidia-modprobe -u -c 0, then nvidia-ctk cdi generate"
    with pytest.raises(RefusedError, match=said):
        CardFiles(tmp_path, lambda: [description])([CARDS[0]])


def test_a_description_without_files_of_cards_needs_none_of_cuda(tmp_path: Path) -> None:
    wsl = {"name": "GPU-0", "containerEdits": {"deviceNodes": [{"path": "/dev/dxg"}]}}
    description = structs.replace(described(wsl), edits={})
    assert CardFiles(tmp_path, lambda: [description])([CARDS[0]]).edits == wsl["containerEdits"]


def test_a_fake_card_has_no_files(tmp_path: Path) -> None:
    assert CardFiles(tmp_path, list, are_made_up=True)([CARDS[1]]).edits == {"deviceNodes": []}
