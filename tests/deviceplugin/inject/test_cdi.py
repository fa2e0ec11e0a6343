"""The CDI specification for the runtime, and which runtimes support CDI."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from deviceplugin.inject.card_files import own_edits
from deviceplugin.inject.cdi import (
    CdiInjector,
    description,
    merged,
    record_in,
    runtime_supports_cdi,
    with_limits,
    without_cdi,
)

DEV: Final = Path("/dev")


def test_a_slot_is_granted_by_its_full_name() -> None:
    granted = CdiInjector().answer("abc")
    assert granted.cdi == ("halfcard.dev/slot=abc",)
    assert not granted.devices and not granted.mounts and not granted.env


def test_a_description_has_the_slots_name_and_record() -> None:
    content = description("abc", '{"any":1}', {"env": ["A=1"]})
    assert record_in(content) == ("abc", '{"any":1}')
    assert msgspec.json.decode(content) == {
        "cdiVersion": "0.6.0",
        "kind": "halfcard.dev/slot",
        "annotations": {"halfcard.dev/holder": '{"any":1}'},
        "devices": [{"name": "abc", "containerEdits": {"env": ["A=1"]}}],
    }


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff", b'{"kind":"nvidia.com/gpu","annotations":{},"devices":[{"name":"0"}]}']
)
def test_another_programs_description_is_an_error(content: bytes) -> None:
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        record_in(content)


def test_device_files_are_those_that_cuda_needs_and_other_existing_ones() -> None:
    there = {DEV / "nvidia1", DEV / "nvidia-uvm-tools"}
    nodes = own_edits(DEV, [1], there.__contains__)["deviceNodes"]
    wanted = ["/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
    assert nodes == [{"path": path} for path in wanted]


def test_device_files_elsewhere_keep_their_names_in_the_container() -> None:
    elsewhere = Path("/run/driver/dev")
    assert own_edits(elsewhere, [1], lambda _: True)["deviceNodes"][0] == {
        "path": "/dev/nvidia1",
        "hostPath": "/run/driver/dev/nvidia1",
    }


def test_halfcards_variables_replace_others_and_limits_are_read_only() -> None:
    there: dict[str, Any] = {"env": ["NVIDIA_VISIBLE_DEVICES=void", "OTHER=1"], "mounts": [{"containerPath": "/lib"}]}
    found = with_limits(there, {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}, "/state/limits.json")
    assert found["env"] == ["OTHER=1", "NVIDIA_VISIBLE_DEVICES=GPU-1"]
    assert found["mounts"][0] == {"containerPath": "/lib"}
    assert found["mounts"][1]["hostPath"] == "/state/limits.json"
    assert found["mounts"][1]["containerPath"] == "/etc/halfcard/limits.json" and "ro" in found["mounts"][1]["options"]
    assert there["env"][0] == "NVIDIA_VISIBLE_DEVICES=void"


def test_edits_that_cards_share_are_written_once() -> None:
    common = {"path": "/dev/nvidiactl"}
    parts = [{"deviceNodes": [common, {"path": f"/dev/nvidia{number}"}]} for number in range(2)]
    assert merged(parts) == {"deviceNodes": [common, {"path": "/dev/nvidia0"}, {"path": "/dev/nvidia1"}]}


RUNTIMES: Final = {
    "containerd://1.6.20": False,
    "containerd://1.7.27": False,
    "containerd://2.0.0-rc.1": True,
    "containerd://2.1.4": True,
    "containerd://v2.3.0+unknown": True,
    "containerd://10.0": True,
    "cri-o://1.22.9": False,
    "cri-o://1.31.1": True,
    "docker://27.0.1": False,
    "containerd://main": False,
    "": False,
}


@pytest.mark.parametrize(("runtime", "supports"), RUNTIMES.items())
def test_runtimes_that_would_ignore_the_cards_are_recognised(runtime: str, supports: bool) -> None:  # noqa: FBT001
    assert runtime_supports_cdi(runtime) is supports


def test_a_runtime_without_cdi_is_refused_with_the_fix() -> None:
    message = without_cdi("containerd://1.6.20")
    assert "containerd://1.6.20" in message and "containerd 2.0, cri-o 1.23" in message and "--without-cdi" in message
