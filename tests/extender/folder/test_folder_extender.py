from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest

from extender.bind.binder import NotBound
from extender.bind.pod_requests import BindCall
from extender.folder.folder_extender import FolderExtender
from extender.folder.folder_pods import FolderPods
from extender.options import extender_options
from halfcard import names
from kube.manifests.documents import read_file, read_path
from kube.manifests.folder_source import FolderSource
from serving import shared_folder
from serving.log import Log
from serving.shared_folder import locked
from settings.installation import Settings

NODE = """\
kind: Node
metadata: {{name: {name}}}
status: {{capacity: {{tencent.com/vcuda-core: "200", tencent.com/vcuda-memory: "118"}}}}
"""
POD = """\
kind: Pod
metadata: {{name: {name}, namespace: team}}  # one of ours
spec:
  containers:
  - name: main
    resources: {{limits: {{tencent.com/vcuda-core: "{core}", tencent.com/vcuda-memory: "20"}}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for node in ("n1", "n2"):
        (tmp_path / f"{node}.yaml").write_text(NODE.format(name=node))
    return tmp_path


def add(folder: Path, name: str, core: int = 60) -> Path:
    file = folder / f"{name}.yaml"
    file.write_text(POD.format(name=name, core=core))
    return file


def extender(folder: Path) -> FolderExtender:
    options = extender_options(Settings())
    return FolderExtender(FolderSource(folder), options, Log(stream=io.StringIO()))


def call(name: str, to: str = "n1") -> BindCall:
    return BindCall(name, "team", f"team/{name}", to)


def stored(folder: Path) -> dict[str, tuple[str | None, str | None]]:
    """The node and the record of each pod."""
    pods = {each.obj["metadata"]["name"]: each.obj for each in read_path(folder) if each.kind == "Pod"}
    return {
        name: (pod["spec"].get("nodeName"), pod["metadata"].get("annotations", {}).get(names.PLACEMENT))
        for name, pod in pods.items()
    }


async def outcome(of: FolderExtender, wanted: BindCall) -> str:
    try:
        await of.bind(wanted)
    except NotBound as why:
        return str(why)
    return "bound"


async def test_a_bind_writes_node_and_record_into_the_pods_own_text(folder: Path) -> None:
    file = add(folder, "a")
    file.chmod(0o640)

    assert await outcome(extender(folder), call("a")) == "bound"

    node, record = stored(folder)["a"]
    assert node == "n1" and record
    assert "# one of ours" in file.read_text() and file.stat().st_mode & 0o777 == 0o640


async def test_a_link_to_a_manifest_stays_a_link(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = add(tmp_path_factory.mktemp("elsewhere"), "a")
    (folder / "a.yaml").symlink_to(elsewhere)

    assert await outcome(extender(folder), call("a")) == "bound"
    assert (folder / "a.yaml").is_symlink() and 'nodeName: "n1"' in elsewhere.read_text()


async def test_a_bind_that_is_repeated_changes_nothing_and_one_to_another_node_is_refused(folder: Path) -> None:
    file, service = add(folder, "a"), extender(folder)
    assert await outcome(service, call("a")) == "bound"
    text = file.read_text()

    assert await outcome(service, call("a")) == "bound"
    assert "is bound to node n1 already, not to n2" in await outcome(service, call("a", to="n2"))
    assert file.read_text() == text


async def test_of_two_services_with_one_folder_one_binds_a_pod_and_no_card_is_given_twice(folder: Path) -> None:
    pods = [add(folder, f"p{number}").stem for number in range(6)]
    services = [extender(folder), extender(folder)]
    calls = [(at, call(pod, to)) for pod in pods for at, to in enumerate(("n1", "n2"))]

    outcomes = await asyncio.gather(*(outcome(services[at], each) for at, each in calls))

    wins = dict.fromkeys(pods, 0)
    for (_, each), found in zip(calls, outcomes, strict=True):
        wins[each.pod_name] += found == "bound"
    assert sorted(wins.values()) == [0, 0, 1, 1, 1, 1]  # 60 % of each of four cards
    assert len({of for of in stored(folder).values() if of[0]}) == 4


async def test_an_edit_is_seen_by_the_next_bind(folder: Path) -> None:
    file, service = add(folder, "a", core=250), extender(folder)
    assert await outcome(service, call("a")) != "bound"

    file.write_text(POD.format(name="a", core=100))
    assert await outcome(service, call("a")) == "bound"


async def test_a_pod_that_was_deleted_and_comes_back_is_placed_again(folder: Path) -> None:
    file, service = add(folder, "a", core=200), extender(folder)
    assert await outcome(service, call("a")) == "bound"
    file.unlink()
    assert "a with uid team/a is gone" in await outcome(service, call("a"))

    add(folder, "a", core=200)
    assert await outcome(service, call("a")) == "bound"


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        ("kind: [\n", r"x.yaml:2: "),
        (POD.format(name="b", core=1), "Pod b is already in .*b.yaml:1; keep one of them"),
        ("kind: Pod\nmetadata: {generateName: x-}\n", "the Pod has no name"),
        ("kind: Pod\nmetadata: {name: x}\nspec: {nodeName: [n1]}\n", "x.yaml:1: the pod cannot be read: .*nodeName"),
    ],
)
async def test_nothing_is_bound_while_the_folder_has_a_mistake(folder: Path, mistake: str, sentence: str) -> None:
    a, _ = add(folder, "a"), add(folder, "b")
    service = extender(folder)
    (folder / "x.yaml").write_text(mistake)
    before = a.read_text()

    with pytest.raises(NotBound, match=f"nothing is bound while the folder has a mistake: .*{sentence}"):
        await service.bind(call("a"))
    assert a.read_text() == before

    (folder / "x.yaml").unlink()
    assert await outcome(service, call("a")) == "bound"


async def test_a_pod_whose_text_has_no_place_for_the_binding_keeps_its_cards_free(folder: Path) -> None:
    file = folder / "a.yaml"
    file.write_text(POD.format(name="a", core=200).replace("spec:", "spec:\n  nodeName: ''"))
    add(folder, "b", core=200)
    service = extender(folder)

    assert f"refused: 403 {file}:1: the binding cannot be written" in await outcome(service, call("a"))
    assert await outcome(service, call("b")) == "bound"


async def test_a_file_that_cannot_be_replaced_keeps_its_text(folder: Path) -> None:
    file = add(folder, "a")
    (folder / ".a.yaml.new").mkdir()

    assert "binding pod team/a was refused: 403 [Errno" in await outcome(extender(folder), call("a"))
    assert stored(folder)["a"] == (None, None) and file.exists()


async def test_a_folder_that_another_process_locks_too_long_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(folder, "a")
    monkeypatch.setattr(shared_folder, "LOCK_PATIENCE_S", 0.05)
    service = extender(folder)

    with locked(folder):
        assert f"folder {folder}: another process has held its lock" in await outcome(service, call("a"))
    assert await outcome(service, call("a")) == "bound"


async def test_a_text_that_is_not_utf_8_is_not_written_over(folder: Path) -> None:
    text = POD.format(name="a", core=1).encode("utf-16")
    (folder / "a.yaml").write_bytes(text)

    assert "save it as UTF-8" in await outcome(extender(folder), call("a"))
    assert (folder / "a.yaml").read_bytes() == text


async def test_a_pod_that_an_editor_changed_since_it_was_read_is_not_written_over(folder: Path) -> None:
    file = add(folder, "a")
    pods = FolderPods()
    pods.known = {("team", "a"): next(read_file(file))}
    path = "/api/v1/namespaces/team/pods/a"
    metadata = json.loads((await pods.get(path)).body)["metadata"]
    binding = {"metadata": {**metadata, "annotations": {}}, "target": {"name": "n1"}}
    file.write_text(edited := POD.format(name="a", core=61))

    answer = await pods.post(f"{path}/binding", json.dumps(binding).encode())

    assert (answer.status, file.read_text()) == (403, edited)
    assert "a.yaml:1: another program has just changed this pod; bind it again" in answer.message()
