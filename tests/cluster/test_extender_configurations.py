"""Configurations for people who come from elsewhere: loaded by the stock scheduler, and their pods are placed.

Here the extender runs beside the scheduler and is called on its loopback address, without TLS, as those have it.
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
def beside() -> Iterator[ExtenderInstallation]:
    """Nothing runs yet."""
    with Cluster(flags=NO_RATE_LIMITS) as cluster, ExtenderInstallation(cluster) as extender:
        yield extender


@contextmanager
def configured(beside: ExtenderInstallation, file: str, port: int) -> Iterator[ExtenderReplica]:
    replica = beside.add_local(port)
    beside.leader()
    beside.schedule_by(beside.shipped(file))
    yield replica
    assert beside.end(replica) == 0


def site_of(beside: ExtenderInstallation, name: str) -> Site:
    return Site(beside, beside.cluster.create_namespace(name), name)


def apply(site: Site, *files: str) -> None:
    for file in files:
        done = site.cluster.kubectl("-n", site.namespace, "apply", "-f", str(_EXAMPLES / file))
        assert done.code == 0, done.stderr


def test_gpu_manager_pods_with_a_configuration_from_its_policy_file(beside: ExtenderInstallation) -> None:
    with configured(beside, "from-gpu-manager.yaml", names.EXTENDER_PORT):
        site = site_of(beside, "gaia")
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


def test_gpushare_pods_with_gpushares_configuration(beside: ExtenderInstallation) -> None:
    with configured(beside, "from-gpushare.yaml", 32766) as replica:
        site = site_of(beside, "ali")
        (node,) = site.add_nodes("gpushare", cards=1, card_mib=14 * 1024)
        apply(site, "gpushare/manifests/binpack-1.yaml")

        def gpus() -> tuple[int, int]:
            (seen,) = replica.ask(f"{names.GPUSHARE_INSPECT_PATH}/{node}")["nodes"]
            return seen["usedGPU"], seen["totalGPU"]

        site.cluster.wait_until(lambda: gpus() == (3, 14), what="3 of 14 GiB to be in use")
        pods = site.cluster.request("GET", site.pods).must()["items"]
        assert {annotations_of(each)["ALIYUN_COM_GPU_MEM_IDX"] for each in pods} == {"0"}


def test_tuya_pods_with_tuyas_configuration(beside: ExtenderInstallation) -> None:
    """Its extender does not bind: nothing is recorded, and the numbers of its document come out all the same."""
    with configured(beside, "tuya.yaml", names.EXTENDER_PORT):
        site = site_of(beside, "tuya")
        (node,) = site.add_nodes("tuya", card_mib=86 * 256)

        def offers() -> tuple[int, ...]:
            found: Mapping[str, Any] = beside.inspect(node)["resources"]
            return tuple(found[name]["total"] for name in ("nvidia.com/gpu", "tuya.com/sgpu", "tuya.com/vcuda-memory"))

        def becomes(*wanted: int) -> None:
            site.cluster.wait_until(lambda: offers() == wanted, what=f"{node} to offer {wanted}")

        becomes(4, 8, 344)
        for name, left in {"notebook": (2, 8, 172), "inference": (1, 6, 172), "training": (1, 4, 86)}.items():
            apply(site, f"tuya-half-cards/manifests/{name}.yaml")
            assert names.PLACEMENT not in annotations_of(site.wait_until_bound(name))
            becomes(*left)
        for name, left in {"training": (1, 6, 172), "inference": (2, 8, 172), "notebook": (4, 8, 344)}.items():
            site.delete(name)
            becomes(*left)


def test_two_halves_wait_with_the_reason_if_only_one_card_has_halves_free(beside: ExtenderInstallation) -> None:
    with configured(beside, "tuya.yaml", names.EXTENDER_PORT):
        site = site_of(beside, "halves")
        site.add_nodes("tuya", cards=2)
        site.place(pod("whole").asks(gpu=1))
        site.create(pod("two-halves").asks(sgpu=2))
        assert "fewer than 2 cards have a half free" in site.wait_for_refusal("two-halves")


def test_without_a_certificate_only_local_callers_may_bind(beside: ExtenderInstallation) -> None:
    with configured(beside, "from-gpu-manager.yaml", names.EXTENDER_PORT) as replica:
        stored = beside.cluster.request("POST", "/api/v1/namespaces/default/pods", _unscheduled()).must()
        assert "client certificate" in beside.bind(stored, "anywhere", by=replica)


def _unscheduled() -> dict[str, Any]:
    return complete(pod("p").asks(core=10, memory=4).specified(schedulerName="nobody"))
