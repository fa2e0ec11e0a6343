from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.__main__ import main
from halfcard import names
from halfcard.placing.records import RecordWriter
from tests import builders
from tests.docs.pages import fences

from .command import ROOT, too_wide

MIXED = ROOT / "deploy" / "examples" / "tuya-half-cards" / "cluster.yaml"


def node(name: str, cards: int = 1) -> dict[str, Any]:
    capacity = {"tencent.com/vcuda-core": str(100 * cards), "tencent.com/vcuda-memory": str(64 * cards)}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity if cards else {}}}


def pod(name: str, core: object = 30, *, on: str = "", card: int | None = None, priority: int = 0) -> dict[str, Any]:
    limits: dict[str, Any] = {names.VCUDA_CORE: core, names.VCUDA_MEMORY: 8}
    built = builders.pod(name).container(name="main", limits=limits).specified(priority=priority)
    return built.on(on, None if card is None else [str(card)]).manifest


class Explain:
    """The command before a cluster of these objects."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def __call__(self, name: str, objects: list[dict[str, Any]], *arguments: str) -> tuple[int, str]:
        dump = self._folder / "dump.json"
        dump.write_text(json.dumps({"kind": "List", "items": objects}))
        code = main(["explain", name, "--state", str(dump), *arguments])
        return code, self._capsys.readouterr().out


@pytest.fixture
def explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    return Explain(tmp_path, capsys)


FULL = [node("gpu1"), pod("a", 80, on="gpu1", card=0, priority=1), node("cpu1", cards=0), node("cpu2", cards=0)]


def test_a_pod_that_fits_nowhere_exits_1_with_reasons_cards_and_the_nearest_node(explain: Explain) -> None:
    code, output = explain("pod/default/new", [*FULL, pod("new", priority=5)])
    assert code == 1
    assert (
        output
        == """\
Pod default/new is pending (priority 5). It requests:
  main: 30 % and 2048 MiB of a card
It fits on no node:
  2 nodes: no GPU known to Halfcard (cpu1, cpu2)
  1 node: no card has 30 % free (gpu1)
Nearest: gpu1, if 1 pod of lower priority ended:
  default/a (priority 1)
gpu1:
  card 0  shared  20 % and 14336 MiB free  1 pod  too few cores
"""
    )


def test_pods_that_only_a_person_could_end_are_marked(explain: Explain) -> None:
    _, output = explain("default/new", [*FULL, pod("new")])
    assert "Evicting pods of lower priority is not enough on any node.\n" in output
    assert "Nearest: gpu1, if 1 pod of any priority ended:\n  default/a (priority 1)\n" in output


def test_the_owners_preferences_are_shown_as_written(explain: Explain) -> None:
    choosy = pod("new")
    choosy["metadata"]["annotations"] = {names.ASK_MODEL: "A100"}
    code, output = explain("default/new", [*FULL, choosy])
    assert code == 1
    assert f"it prefers {names.ASK_MODEL}=A100" in output
    assert "card 0  shared  20 % and 14336 MiB free  1 pod  not among the requested cards" in output


def test_the_nodes_for_a_pod_are_listed_best_first(explain: Explain) -> None:
    code, output = explain("default/new", [*FULL, node("gpu2"), pod("new")])
    assert code == 0
    assert (
        "Halfcard has no objection: it fits on 1 of 4 nodes, by score:\n  10  gpu2\n"
        "It fits on no other:\n  2 nodes: no GPU known to Halfcard" in output
    )


def test_a_bound_pod_shows_its_cards_and_their_other_pods(explain: Explain) -> None:
    code, output = explain("default/a", [*FULL, pod("b", 10, on="gpu1")])
    assert (code, output) == (
        0,
        """\
Pod default/a is on node gpu1, its cards recorded by Halfcard.
  main: 80 % and 2048 MiB of a card
    not held to its share, as far as its node's agent has recorded
    card 0  shared
      beside default/b  10 %  2048 MiB
""",
    )
    _, guessed = explain("default/b", [*FULL, pod("b", 10, on="gpu1")])
    assert guessed.startswith("Pod default/b is on node gpu1, its cards are not recorded and are guessed.\n")


def test_a_record_of_the_agent_shows_that_the_scheduler_did_not_call_the_extender(explain: Explain) -> None:
    bypassing = pod("past", on="gpu1", card=0)
    record = json.loads(bypassing["metadata"]["annotations"][names.PLACEMENT])
    bypassing["metadata"]["annotations"][names.PLACEMENT] = json.dumps(record | {"by": RecordWriter.AGENT})
    _, output = explain("default/past", [node("gpu1"), bypassing])
    assert "its cards recorded by Halfcard's agent, because its scheduler did not call the extender." in " ".join(
        output.split()
    )


def test_a_forged_record_and_an_invalid_amount_are_shown_as_the_reason(explain: Explain) -> None:
    for odd, message in ((pod("odd", card=0), names.PLACEMENT), (pod("odd", "1.5"), 'got "1.5"')):
        code, said = explain("default/odd", [*FULL, odd])
        assert code == 1
        assert said.startswith("Pod default/odd is pending, and can never fit on any node:\n") and message in said


def test_pods_without_cards_and_pods_that_have_ended_need_no_explanation(explain: Explain) -> None:
    plain = {"kind": "Pod", "metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c"}]}}
    over = {**pod("over", on="gpu1", card=0), "status": {"phase": "Failed"}}
    assert explain("default/plain", [plain]) == (
        0,
        "Pod default/plain is pending and requests no card: for Halfcard it may run anywhere.\n",
    )
    code, output = explain("default/over", [node("gpu1"), over])
    assert code == 0 and output.startswith("Pod default/over has ended and uses no card.\n")


def test_a_large_cluster_fills_a_screen_and_the_json_holds_all_of_it(explain: Explain) -> None:
    nodes = [node(f"gpu{at}", cards=8) for at in range(60)]
    pods = [pod(f"p{at}-{card}", 80, on=f"gpu{at}", card=card) for at in range(60) for card in range(8)]
    objects = [*nodes, *pods, pod("new", 800, priority=9)]
    _, output = explain("default/new", objects)
    assert len(output.splitlines()) <= 40 and too_wide(output) == []
    assert "60 nodes: fewer than 8 cards are wholly free (gpu0, gpu1, gpu10, …)" in output
    _, written = explain("default/new", objects, "-o", "json")
    prospects = json.loads(written)["prospects"]
    assert len(prospects["nodes"]) == 60
    assert len(prospects["nearest"]["pods"]) == 8
    assert prospects["nodes"][0]["cards"][0] == {
        "index": 0,
        "name": "0",
        "model": "",
        "mode": "shared",
        "cores_free": 20,
        "memory_mib_free": 14336,
        "parts_free": 0,
        "pods": ["default/p0-0"],
        "reason": "not wholly free",
    }


SAID = "0/2 nodes are available: 2 Insufficient cpu."


def refused(pending: dict[str, Any], message: str = SAID, reason: str = "Unschedulable") -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {**pending, "status": {"phase": "Pending", "conditions": [condition]}}


def test_the_schedulers_words_come_before_halfcards_and_the_exit_code_is_1(explain: Explain) -> None:
    code, output = explain("default/new", [node("gpu1"), refused(pod("new"))])
    assert code == 1
    assert (
        output
        == f"""\
Pod default/new is pending (priority 0). It requests:
  main: 30 % and 2048 MiB of a card
kube-scheduler says: {SAID}
Halfcard has no objection: it fits on 1 of 1 node, by score:
  10  gpu1
"""
    )


def test_it_prints_what_the_page_shows(explain: Explain) -> None:
    texts = (each for each in fences(ROOT / "docs" / "inspect.md") if each.language == "text")
    (fence,) = (each for each in texts if "kube-scheduler says" in each.text)
    command, _, shown = fence.text.partition("\n")
    assert command == "$ halfcard explain train -n team-a"
    message = (
        "0/4 nodes are available: 4 Insufficient cpu. no new claims to deallocate, preemption: 0/4 nodes are available:"
        " 4 No preemption victims found for incoming pod."
    )
    nodes = [node("gpu1"), *(node(name, cards=0) for name in ("cpu1", "cpu2", "cpu3"))]
    train = refused(pod("train"), message)
    train["metadata"]["namespace"] = "team-a"
    assert explain("train", [*nodes, train], "-n", "team-a") == (1, shown)


def test_the_schedulers_words_about_a_pod_without_cards_are_shown(explain: Explain) -> None:
    plain = {"kind": "Pod", "metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c"}]}}
    code, output = explain("default/plain", [refused(plain)])
    assert (code, output.splitlines()[1:]) == (1, [f"kube-scheduler says: {SAID}"])


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_documents_have_what_the_scheduler_says(explain: Explain, form: str) -> None:
    gated = {**pod("new"), "spec": {**pod("new")["spec"], "schedulingGates": [{"name": "example.com/review"}]}}
    for pending in (gated, refused(pod("new"))):
        code, written = explain("default/new", [node("gpu1"), pending], "-o", form)
        found = yaml.safe_load(written)["scheduling"]
        assert code == 1 and found["scheduler"] == "default-scheduler"
        if pending is gated:
            assert "example.com/review" in found["obstacles"][0] and found["report"] is None
        else:
            assert found["report"] == {"reason": "Unschedulable", "message": SAID, "since": ""}


def test_a_node_whose_agent_is_gone_is_not_offered(explain: Explain) -> None:
    silent = node("gpu1")
    silent["status"]["allocatable"] = {names.VCUDA_CORE: "0", names.VCUDA_MEMORY: "0"}
    code, output = explain("default/new", [silent, pod("new")])
    assert code == 1
    assert f"offers no {names.VCUDA_CORE}, {names.VCUDA_MEMORY} now, though its cards have room" in " ".join(
        output.split()
    )


def owned(name: str, kind: str, owner: str, **more: Any) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": kind, "name": owner, "uid": owner, "controller": True}
    made = pod(name, **{key: value for key, value in more.items() if key != "labels"})
    made["metadata"] |= {"ownerReferences": [reference], "labels": more.get("labels", {})}
    return made


HASHED = {"pod-template-hash": "7f8"}
OWNERS = {
    "deploy/web": ("ReplicaSet", "web-7f8"),
    "deployment.apps/web": ("ReplicaSet", "web-7f8"),
    "rs/web-7f8": ("ReplicaSet", "web-7f8"),
    "sts/web": ("StatefulSet", "web"),
    "ds/web": ("DaemonSet", "web"),
    "job/web": ("Job", "web"),
    "Job/default/web": ("Job", "web"),
}


@pytest.mark.parametrize(("written", "owner"), OWNERS.items(), ids=OWNERS.keys())
def test_a_workload_stands_for_its_oldest_pending_pod(explain: Explain, written: str, owner: tuple[str, str]) -> None:
    bound, young, old = (
        owned(name, *owner, labels=HASHED, on=on) for name, on in (("a", "gpu1"), ("b", ""), ("c", ""))
    )
    young["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z", "2026-01-01"
    other = owned("other", owner[0], f"{owner[1]}x", labels=HASHED)
    code, output = explain(written, [node("gpu1"), bound, young, old, other])
    assert code == 0
    assert "has 3, 2 of them pending.\nPod default/c is pending" in output


def test_a_workload_without_a_pod_is_not_found_in_a_dump(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "sts/none", "-n", "team", "--state", str(MIXED)]) == 2
    assert "no pod of StatefulSet team/none exists there" in capsys.readouterr().err


UNUSABLE = {
    "no such pod": ("pod/team-a/none", "pod team-a/none does not exist"),
    "too many parts": ("pod/a/b/c", 'got "pod/a/b/c"; write NAME, NAMESPACE/NAME or KIND/NAME'),
    "no name": ("pod/", 'got "pod/"'),
}


@pytest.mark.parametrize(("written", "message"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_missing_pod_exits_2(written: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", written, "--state", str(MIXED)]) == 2
    assert capsys.readouterr().err.startswith(f"halfcard explain: {message}")


def test_an_inconsistency_that_concerns_the_pod_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = {"kind": "Node", "metadata": {"name": "odd"}, "status": {"capacity": {"tencent.com/vcuda-core": "50"}}}
    objects = [*FULL, pod("b", 80, on="gpu1", card=0), odd, pod("new")]
    (tmp_path / "state.json").write_text(json.dumps({"kind": "List", "items": objects}))
    main(["explain", "default/new", "--state", str(tmp_path)])
    assert capsys.readouterr().err.startswith("Warning: node odd is left out")
    main(["explain", "default/b", "--state", str(tmp_path)])
    assert capsys.readouterr().err.startswith("Warning: pod default/b on node gpu1: card 0 has less left")


def test_without_a_name_all_pending_pods_are_listed(explain: Explain, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = refused(pod("elsewhere"))
    elsewhere["metadata"]["namespace"] = "team-a"
    objects = [node("gpu1"), pod("on", on="gpu1", card=0), pod("new"), elsewhere]
    plain = {"kind": "Pod", "metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c"}]}}
    everything = f"team-a/elsewhere: {SAID}\ndefault/new: no scheduler has tried it\n"
    assert explain("-A", [*objects, plain]) == (1, everything)
    assert explain("-nteam-a", objects) == (1, f"team-a/elsewhere: {SAID}\n")
    assert explain("-nteam-b", objects) == (0, "No pod that requests cards is pending.\n")
    code, written = explain("-A", objects, "-o", "json")
    assert (code, [each["why"] for each in json.loads(written)["pending"]]) == (1, [SAID, "no scheduler has tried it"])
    assert main(["explain", "new", "-A", "--state", str(MIXED)]) == 2
    assert "got new and -A; name its namespace with -n" in capsys.readouterr().err
