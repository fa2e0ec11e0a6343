"""The cards through NVIDIA's own `pynvml`, on a stand-in for its library."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pynvml  # type: ignore[import-untyped]
import pytest

from deviceplugin.gpus.interface import Gpu, GpusError, Load, Process
from tests.nvml.stand_in import Pair, StandIn, StandInCard, StandInProcess, stand_in_cards

from .conftest import Opened

ONE: Final = "GPU-00000000"
OTHER: Final = "GPU-00000001"
GONE: Final = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_GPU_NOT_FOUND)


def test_a_card_has_the_values_that_the_driver_reports(driver: StandIn, opened: Opened) -> None:
    driver.cards = [StandInCard("GPU-1a", 3, "NVIDIA A100-SXM4-80GB", 81920, pci="00000000:3B:00.0", numa=1)]
    assert opened().read() == (Gpu(3, "GPU-1a", "NVIDIA A100-SXM4-80GB", 81920, "00000000:3B:00.0", 1),)


def test_a_machine_without_cards_has_none(driver: StandIn, opened: Opened) -> None:
    driver.cards = []
    assert opened().read() == ()


def test_the_numa_node_of_a_card_is_read_from_the_kernel_or_the_driver(
    driver: StandIn, opened: Opened, tmp_path: Path
) -> None:
    driver.cards = stand_in_cards(3, numa=1)
    for place, node in {"0000:10:00.0": "0\n", "0000:11:00.0": "-1\n"}.items():
        device = tmp_path / "bus/pci/devices" / place
        device.mkdir(parents=True)
        (device / "numa_node").write_text(node)
    assert [gpu.numa for gpu in opened(tmp_path).read()] == [0, 1, 1]


LEVELS: Final = {
    pynvml.NVML_TOPOLOGY_SYSTEM: 10,
    pynvml.NVML_TOPOLOGY_NODE: 20,
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: 30,
    pynvml.NVML_TOPOLOGY_MULTIPLE: 40,
    pynvml.NVML_TOPOLOGY_SINGLE: 50,
    pynvml.NVML_TOPOLOGY_INTERNAL: 60,
}


@pytest.mark.parametrize(("level", "strength"), LEVELS.items())
def test_cards_that_are_nearer_on_pci_are_better_connected(
    driver: StandIn, opened: Opened, level: int, strength: int
) -> None:
    driver.pairs = [Pair(ONE, OTHER, level)]
    assert [gpu.links for gpu in opened().read()] == [((1, strength),), ((0, strength),)]


def test_every_nvlink_between_two_cards_counts(driver: StandIn, opened: Opened) -> None:
    driver.cards = stand_in_cards(3)
    driver.pairs = [
        Pair(ONE, OTHER, pynvml.NVML_TOPOLOGY_NODE, nvlinks=2),
        Pair(ONE, "GPU-00000002", nvlinks=1),
    ]
    assert [gpu.links for gpu in opened().read()] == [((1, 220), (2, 110)), ((0, 220), (2, 10)), ((0, 110), (1, 10))]


def test_a_switch_connects_every_card_with_every_other(driver: StandIn, opened: Opened) -> None:
    driver.cards = stand_in_cards(3, switch_links=18)
    driver.change(OTHER, switch_links=4)
    assert [gpu.links for gpu in opened().read()] == [
        ((1, 410), (2, 1810)),
        ((0, 410), (2, 410)),
        ((0, 1810), (1, 410)),
    ]


@pytest.mark.parametrize(("mode", "is_mig"), {-1: False, 0: False, 1: True}.items())
def test_a_card_with_mig_instances_is_marked(driver: StandIn, opened: Opened, mode: int, is_mig: bool) -> None:  # noqa: FBT001 - a table
    driver.change(ONE, mig=mode)
    assert [gpu.is_mig for gpu in opened().read()] == [is_mig, False]


TROUBLES: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "none": ({}, ""),
    "an older driver": ({"recovery": -1, "unmappable": -1}, ""),
    "a reset": ({"recovery": pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET}, "the driver asks for a reset of the card"),
    "a reboot": ({"recovery": pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT}, "the driver asks for a reboot of the"),
    "its neighbours": ({"recovery": pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P}, ""),
    "memory": ({"unmappable": 1}, "exchange the card"),
    "no answer": ({"fails": pynvml.NVML_ERROR_TIMEOUT}, 'the driver answers "Timeout" (NVML error 10)'),
}


@pytest.mark.parametrize(("change", "trouble"), TROUBLES.values(), ids=TROUBLES)
def test_an_error_of_one_card_concerns_only_that_card(
    driver: StandIn, opened: Opened, change: dict[str, Any], trouble: str
) -> None:
    nvml = opened()
    nvml.read()
    driver.change(ONE, **change)
    first, second = nvml.read()
    assert trouble in first.trouble and bool(trouble) == bool(first.trouble)
    assert (first.uuid, first.memory_mib, second.trouble) == (ONE, 0 if "fails" in change else 15109, "")


@pytest.mark.parametrize("error", GONE)
def test_a_lost_card_is_missing_and_comes_back(driver: StandIn, opened: Opened, error: int) -> None:
    nvml = opened()
    before = nvml.read()
    driver.fail(ONE, error)
    for _ in range(3):  # by the driver that was open, and by one that is opened afterwards
        assert [gpu.uuid for gpu in nvml.read()] == [OTHER]
    with pytest.raises(GpusError, match=f"{ONE}.*but {OTHER}"):
        nvml.load(ONE)
    driver.recover(ONE)
    assert nvml.read() == before


def test_a_lost_card_does_not_hide_the_others(driver: StandIn, opened: Opened) -> None:
    nvml = opened()
    nvml.read()
    driver.fail(ONE)
    driver.xid(OTHER, 79)
    assert [incident.uuid for incident in nvml.wait(5)] == [OTHER]
    assert nvml.load(OTHER) == Load(0, 0, ())
    with pytest.raises(GpusError, match="GPU is lost"):
        nvml.load(ONE)


def test_a_card_that_is_added_is_found(driver: StandIn, opened: Opened) -> None:
    nvml = opened()
    assert len(nvml.read()) == 2
    driver.cards = stand_in_cards(3)
    nvml.read()
    assert len(nvml.read()) == 3


def test_a_reloaded_driver_is_opened_again(driver: StandIn, opened: Opened) -> None:
    nvml = opened()
    before = nvml.read()
    driver.reload()
    assert nvml.load(ONE) == Load(0, 0, ())
    driver.reload()
    assert nvml.read() == before


def test_a_driver_that_is_not_loaded_is_reported_until_it_is(driver: StandIn, opened: Opened) -> None:
    nvml = opened()
    before = nvml.read()
    driver.unload()
    for _ in range(2):
        with pytest.raises(GpusError, match="not loaded: load it into this node's kernel"):
            nvml.read()
        assert nvml.wait(0.01) == ()
    driver.reload()
    assert nvml.read() == before


REFUSALS: Final = {
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "another version than libnvidia-ml.so.1: reboot the node",
    pynvml.NVML_ERROR_NO_PERMISSION: "give the agent's container /dev/nvidiactl",
    pynvml.NVML_ERROR_UNKNOWN: r'answers "Unknown Error" \(NVML error 999\): the kernel\'s log says more',
}


@pytest.mark.parametrize(("error", "sentence"), REFUSALS.items())
def test_a_driver_that_cannot_be_opened_says_why(driver: StandIn, opened: Opened, error: int, sentence: str) -> None:
    driver.refuse(error)
    nvml = opened()
    with pytest.raises(GpusError, match=sentence):
        nvml.read()
    driver.refuse(0)
    assert len(nvml.read()) == 2


def test_a_driver_that_disappears_while_it_is_opened_is_closed(driver: StandIn, opened: Opened) -> None:
    driver.fail(ONE, pynvml.NVML_ERROR_UNINITIALIZED)
    nvml = opened()
    with pytest.raises(GpusError, match="Uninitialized"):
        nvml.read()
    driver.recover(ONE)
    driver.reload()
    assert len(nvml.read()) == 2


def test_processes_of_every_kind_are_listed_once_with_memory_and_cores(driver: StandIn, opened: Opened) -> None:
    driver.change(ONE, used_mib=3000, reserved_mib=500, cores_pct=90)
    driver.processes(
        ONE,
        StandInProcess(12, 1024, 60),
        StandInProcess(12, -1, 60, kind="G"),
        StandInProcess(11, 512, 30, kind="M"),
        StandInProcess(13, -1, 4_000_000_000),
    )
    processes = (Process(11, 512, 30), Process(12, 1024, 60), Process(13, 0, 0))
    nvml = opened()
    assert nvml.load(ONE) == Load(3000, 90, processes)
    assert nvml.load(OTHER) == Load(0, 0, ())


SIDE_MATTERS: Final = (
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetName",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetMemoryAffinity",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetRemappedRows",
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetTopologyCommonAncestor",
    "nvmlDeviceGetNvLinkState",
    "nvmlDeviceGetNvLinkRemotePciInfo_v2",
    "nvmlDeviceGetNvLinkRemoteDeviceType",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetProcessUtilization",
    "nvmlDeviceGetSupportedEventTypes",
    "nvmlDeviceRegisterEvents",
)
UNSUPPORTED: Final = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_UNKNOWN,
)


@pytest.mark.parametrize("error", UNSUPPORTED)
def test_an_old_card_or_driver_reports_less_without_failing(driver: StandIn, opened: Opened, error: int) -> None:
    lacks = dict.fromkeys(SIDE_MATTERS, error)
    driver.cards = stand_in_cards(2, lacks=lacks, used_mib=100, reserved_mib=28, processes=(StandInProcess(7, 50, 5),))
    nvml = opened()
    assert nvml.read() == (Gpu(0, ONE, "", 15109), Gpu(1, OTHER, "", 15109))
    assert nvml.load(ONE) == Load(128, 0, (Process(7, 50, 0),))
    assert nvml.wait(0.01) == ()


@pytest.mark.parametrize("function", SIDE_MATTERS)
def test_an_unsupported_query_loses_no_card(driver: StandIn, opened: Opened, function: str) -> None:
    driver.change(ONE, lacks={function: pynvml.NVML_ERROR_NOT_SUPPORTED})
    nvml = opened()
    assert [gpu._replace(model="", pci="", links=()) for gpu in nvml.read()] == [
        Gpu(0, ONE, "", 15109),
        Gpu(1, OTHER, "", 15109),
    ]
    driver.xid(OTHER, 79)
    assert [incident.uuid for incident in nvml.wait(5)] == [OTHER]
