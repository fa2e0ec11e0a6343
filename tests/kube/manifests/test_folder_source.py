from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from halfcard.capacity import CapacityRules
from halfcard.cards import Card, Node
from kube.cluster_source import ClusterSource
from kube.manifests.documents import ManifestError
from kube.manifests.folder_source import FolderSource
from tests.waiting import until

NODE = """\
kind: Node
metadata: {name: n1}
status: {capacity: {tencent.com/vcuda-core: 400, tencent.com/vcuda-memory: 236}}
"""
OTHERS = """\
kind: Namespace
metadata: {name: team-a}
---
kind: ResourceQuota
metadata: {name: gpu, namespace: team-a}
spec: {hard: {requests.tencent.com/vcuda-core: 100}}
---
kind: ResourceQuota
metadata: {name: cpu, namespace: team-a}
---
kind: ResourceQuota
metadata: {name: gpu}
---
kind: ConfigMap
metadata: {name: env, namespace: team-a}
data: {LD_PRELOAD: /x.so}
binaryData: {blob: AA==}
---
kind: Pod
metadata: {name: a}
---
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  extendedResourceName: nvidia.com/gpu
  selectors: [{cel: {expression: device.driver == "gpu.nvidia.com"}}]
---
kind: ResourceSlice
metadata: {name: dra1-gpu.nvidia.com}
spec: {driver: gpu.nvidia.com, nodeName: dra1}
---
kind: ResourceSlice
metadata: {name: odd}
spec: {driver: [1]}
---
kind: Unheard
"""


def folder(path: Path, **files: str) -> Path:
    for name, text in files.items():
        (path / f"{name}.yaml").write_text(text)
    return path


@contextlib.asynccontextmanager
async def watching(source: ClusterSource) -> AsyncIterator[None]:
    watch = asyncio.create_task(source.watch())
    try:
        yield
        assert not watch.done()
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch


def quick(path: Path) -> FolderSource:
    return FolderSource(path, poll_seconds=0.005)


def test_a_folder_fills_every_field_of_the_view(tmp_path: Path) -> None:
    source: ClusterSource = FolderSource(folder(tmp_path, node=NODE, others=OTHERS))
    view = source.view()
    assert source.ready()
    assert source.problems() == ()
    assert view.nodes == (Node("n1", tuple(Card(index, "", 15104) for index in range(4))),)
    assert view.largest_card_mib == 15104
    assert view.driver_nodes == {"dra1"}
    assert view.namespaces == {"team-a"}
    assert view.configmap_keys == {("team-a", "env"): {"LD_PRELOAD", "blob"}}
    assert {ns: [quota["metadata"]["name"] for quota in found] for ns, found in view.quotas.items()} == {
        "team-a": ["gpu", "cpu"],
        "default": ["gpu"],
    }


def test_an_empty_folder_is_an_empty_view(tmp_path: Path) -> None:
    view = FolderSource(tmp_path).view()
    assert view.nodes == ()
    assert view.largest_card_mib is None


def test_how_systems_publish_is_a_setting(tmp_path: Path) -> None:
    capacity = "{aliyun.com/gpu-mem: 900, aliyun.com/gpu-count: 2}"
    text = f"kind: Node\nmetadata: {{name: a}}\nstatus: {{capacity: {capacity}}}\n"
    source = FolderSource(folder(tmp_path, node=text), CapacityRules(aliyun_unit_mib=1))
    assert source.view().largest_card_mib == 450


def test_an_implausible_node_affects_only_itself_and_is_reported(tmp_path: Path) -> None:
    odd = "kind: Node\nmetadata: {name: odd}\nstatus: {capacity: {tencent.com/vcuda-core: 50}}\n"
    source = FolderSource(folder(tmp_path, node=NODE, odd=odd))
    assert [node.name for node in source.view().nodes] == ["n1"]
    assert len(source.problems()) == 1
    assert source.problems()[0].startswith('node odd is left out: status.capacity["tencent.com/vcuda-core"]')


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: Node\nspec: [\n", r"bad\.yaml:3: "),
        ("\nkind: Node\nmetadata: {}\n", r"bad\.yaml:2: the Node has no name"),
        ("kind: Node\nmetadata: {name: 7}\n", r"bad\.yaml:1: the Node has no name"),
        ("kind: Node\nmetadata: x\n", r"bad\.yaml:1: the Node has no name"),
        ("---\n" + NODE, r"node\.yaml:1: Node n1 is already in .*bad\.yaml:2"),
    ],
)
def test_an_invalid_manifest_prevents_the_start(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ManifestError, match=complaint):
        FolderSource(folder(tmp_path, node=NODE, bad=text))


def test_a_missing_folder_prevents_the_start(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="state:1: cannot be read: No such file or directory"):
        FolderSource(tmp_path / "state")


async def test_every_kind_of_change_is_read(tmp_path: Path) -> None:
    source = quick(folder(tmp_path, node=NODE))
    async with watching(source):
        (tmp_path / "sub").mkdir()
        folder(tmp_path / "sub", more=NODE.replace("n1", "n2"))
        await until(lambda: len(source.view().nodes) == 2)
        (tmp_path / "sub" / "new").write_text(NODE.replace("n1", "n3"))
        (tmp_path / "sub" / "new").replace(tmp_path / "sub" / "more.yaml")
        await until(lambda: [node.name for node in source.view().nodes] == ["n1", "n3"])
        (tmp_path / "node.yaml").unlink()
        await until(lambda: [node.name for node in source.view().nodes] == ["n3"])


async def test_a_later_mistake_keeps_the_last_valid_view_until_it_is_fixed(tmp_path: Path) -> None:
    source = quick(folder(tmp_path, node=NODE))
    good = source.view()
    async with watching(source):
        folder(tmp_path, node="kind: Node\n\tx: 1\n")
        await until(lambda: bool(source.problems()))
        assert source.problems()[0].startswith(f"{tmp_path}/node.yaml:2: a tab in the indentation")
        assert source.view() is good
        assert source.ready()
        folder(tmp_path, node=NODE.replace("236", "472"))
        await until(lambda: not source.problems())
        assert source.view().largest_card_mib == 2 * 15104


async def test_a_folder_that_disappears_is_reported_and_read_when_it_is_back(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    source = quick(folder(state, node=NODE))
    async with watching(source):
        state.rename(tmp_path / "away")
        await until(lambda: bool(source.problems()))
        assert "No such file" in source.problems()[0]
        assert len(source.view().nodes) == 1
        (tmp_path / "away").rename(state)
        await until(lambda: not source.problems())


def test_files_that_did_not_change_are_not_read_again(tmp_path: Path) -> None:
    source = FolderSource(folder(tmp_path, node=NODE))
    view = source.view()
    source.refresh()
    assert source.view() is view
    folder(tmp_path, more=NODE.replace("n1", "n2"))
    source.refresh()
    assert source.view() is not view
