"""Scheduler configurations for users of other systems: the stock scheduler loads them, and their pods are placed.

The extender runs on the scheduler's machine and is called on its loopback address without TLS, as in those systems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from devcluster.cluster import Cluster
from devcluster.services.extender_installation import ExtenderInstallation, ExtenderReplica
from halfcard import names
from tests.builders import pod

from .load import NO_RATE_LIMITS
from .manifests import complete
from .site import Site, annotations_of, cards_of, node_of

_EXAMPLES: Final = Path(__file__).parents[2] / "deploy" / "examples"


@pytest.fixture(scope="module")
def local_extender() -> Iterator[ExtenderInstallation]:
    """A cluster with an extender installation, without replicas."""
    with Cluster(flags=NO_RATE_LIMITS) as cluster, ExtenderInstallation(cluster) as local_extender:
        yield local_extender


@contextmanager
def configured(local_extender: ExtenderInstallation, file: str, port: int) -> Iterator[ExtenderReplica]:
    replica = local_extender.add_local(port)
    local_extender.leader()
    local_extender.schedule_by(local_extender.shipped(file))
    yield replica
    assert local_extender.end(replica) == 0


def site_of(local_extender: ExtenderInstallation, name: str) -> Site:
    return Site(local_extender, local_extender.cluster.create_namespace(name), name)


def apply(site: Site, *files: str) -> None:
    for file in files:
        done = site.cluster.kubectl("-n", site.namespace, "apply", "-f", str(_EXAMPLES / file))
        assert done.code == 0, done.stderr


def test_gpu_manager_pods_with_a_configuration_from_its_policy_file(local_extender: ExtenderInstallation) -> None:
    with configured(local_extender, "from-gpu-manager.yaml", names.EXTENDER_PORT):
        site = site_of(local_extender, "gaia")
        (node,) = site.add_nodes("gpu-manager", cards=4, card_mib=15109)
        pods = ("vcuda", "vcuda20", "vcuda100", "vcuda200")
        apply(site, *(f"gpu-manager/manifests/{name}.yaml" for name in pods))
        stored = {name: site.wait_until_bound(name) for name in pods}
        assert [node_of(each) for each in stored.values()] == [node] * 4
        (shared,), (also,) = cards_of(stored["vcuda"]).values(), cards_of(stored["vcuda20"]).values()
        assert shared == also
        wholes = [cards_of(stored[name]).values() for name in ("vcuda100", "vcuda200")]
        whole = [card for containers in wholes for cards in containers for card in cards]
        assert sorted([*shared, *whole]) == ["0", "1", "2", "3"]
        assert annotations_of(stored["vcuda200"])["tencent.com/predicate-gpu-idx-0"].count(",") == 1


def test_gpushare_pods_with_gpushares_configuration(local_extender: ExtenderInstallation) -> None:
    with configured(local_extender, "from-gpushare.yaml", 32766) as replica:
        site = site_of(local_extender, "ali")
        (node,) = site.add_nodes("gpushare", cards=1, card_mib=14 * 1024)
        apply(site, "gpushare/manifests/binpack-1.yaml")

        def gpus() -> tuple[int, int]:
            (found,) = replica.ask(f"{names.GPUSHARE_INSPECT_PATH}/{node}")["nodes"]
            return found["usedGPU"], found["totalGPU"]

        site.cluster.wait_until(lambda: gpus() == (3, 14), what="3 of 14 GiB to be in use")
        pods = site.cluster.request("GET", site.pods).must()["items"]
        assert {annotations_of(each)["ALIYUN_COM_GPU_MEM_IDX"] for each in pods} == {"0"}


def test_tuya_pods_with_tuyas_configuration(local_extender: ExtenderInstallation) -> None:
    """Tuya's extender does not bind: nothing is recorded, and the amounts are those of its document."""
    with configured(local_extender, "tuya.yaml", names.EXTENDER_PORT):
        site = site_of(local_extender, "tuya")
        (node,) = site.add_nodes("tuya", card_mib=86 * 256)

        def totals() -> tuple[int, ...]:
            found: Mapping[str, Any] = local_extender.inspect(node)["resources"]
            return tuple(found[name]["total"] for name in ("nvidia.com/gpu", "tuya.com/sgpu", "tuya.com/vcuda-memory"))

        def wait_for_totals(*expected: int) -> None:
            site.cluster.wait_until(lambda: totals() == expected, what=f"{node} to offer {expected}")

        wait_for_totals(4, 8, 344)
        for name, left in {"notebook": (2, 8, 172), "inference": (1, 6, 172), "training": (1, 4, 86)}.items():
            apply(site, f"tuya-half-cards/manifests/{name}.yaml")
            assert names.PLACEMENT not in annotations_of(site.wait_until_bound(name))
            wait_for_totals(*left)
        for name, left in {"training": (1, 6, 172), "inference": (2, 8, 172), "notebook": (4, 8, 344)}.items():
            site.delete(name)
            wait_for_totals(*left)


def test_two_halves_wait_with_the_reason_if_only_one_card_has_halves_free(local_extender: ExtenderInstallation) -> None:
    with configured(local_extender, "tuya.yaml", names.EXTENDER_PORT):
        site = site_of(local_extender, "halves")
        site.add_nodes("tuya", cards=2)
        site.place(pod("whole").asks(gpu=1))
        site.create(pod("two-halves").asks(sgpu=2))
        assert "fewer than 2 cards have a half free" in site.wait_for_refusal("two-halves")


def test_without_a_certificate_only_local_callers_may_bind(local_extender: ExtenderInstallation) -> None:
    with configured(local_extender, "from-gpu-manager.yaml", names.EXTENDER_PORT) as replica:
        stored = local_extender.cluster.request("POST", "/api/v1/namespaces/default/pods", _unscheduled()).must()
        assert "client certificate" in local_extender.bind(stored, "anywhere", by=replica)


def _unscheduled() -> dict[str, Any]:
    return complete(pod("p").asks(core=10, memory=4).specified(schedulerName="no-scheduler"))
