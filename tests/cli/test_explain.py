from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.__main__ import main
from halfcard import names
from tests import builders

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
        "It fits on 1 of 4 nodes, by score:\n  10  gpu2\nIt fits on no other:\n  2 nodes: no GPU known to Halfcard"
        in output
    )


def test_a_bound_pod_shows_its_cards_and_their_other_pods(explain: Explain) -> None:
    code, output = explain("default/a", [*FULL, pod("b", 10, on="gpu1")])
    assert (code, output) == (
        0,
        """\
Pod default/a is on node gpu1, its cards recorded by Halfcard.
  main: 80 % and 2048 MiB of a card
    card 0  shared
      beside default/b  10 %  2048 MiB
""",
    )
    _, guessed = explain("default/b", [*FULL, pod("b", 10, on="gpu1")])
    assert guessed.startswith("Pod default/b is on node gpu1, its cards are not recorded and are guessed.\n")


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
        "Pod default/plain requests no card: for Halfcard it may run anywhere.\n",
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


UNUSABLE = {
    "no such pod": ("pod/team-a/none", "pod team-a/none does not exist"),
    "too many parts": ("pod/a/b/c", 'got "pod/a/b/c"; write a pod as pod/NAMESPACE/NAME'),
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
