from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

import cli.inputs.agent_usage
from cli.__main__ import main
from deviceplugin.gpus.interface import Process
from deviceplugin.usage.usage_json import usage_json
from deviceplugin.usage.usage_text import usage_text
from tests.deviceplugin.usages import NODE, SEED, load, owner, tenant, tensorflow, usage
from tests.docs.pages import ROOT, Fence, fences

from .command import too_wide
from .proxying_server import HANGS, REFUSES, cluster_of

GPU1: Final = usage(
    [SEED, tenant(tensorflow(core=100), "work", apps=["tensorflow"])],
    {"GPU-0": load(Process(7, 300, 5)), "GPU-1": load(Process(8, 9000, 90))},
    {7: owner("vcuda"), 8: owner("work")},
)
GPU2: Final = replace(usage([], node=NODE), node="gpu2")
BOTH: Final = {"gpu1": usage_json(GPU1), "gpu2": usage_json(GPU2)}


@dataclass(frozen=True)
class Printed:
    code: int
    out: str
    err: str


class Top:
    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capture = capture

    def __call__(self, agents: Mapping[str, str | bytes | None], *arguments: str, in_pods: bool = True) -> Printed:
        with cluster_of(self._folder, agents, in_pods=in_pods) as kubeconfig:
            code = main(["top", *arguments, "--kubeconfig", str(kubeconfig)])
        return Printed(code, *self._capture.readouterr())


@pytest.fixture
def top(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Top:
    return Top(tmp_path, capsys)


def test_every_node_with_an_agent_is_a_line(top: Top) -> None:
    printed = top({**BOTH, "cpu1": None})
    assert (printed.code, printed.err) == (0, "")
    assert printed.out == (
        "NODE  CARDS                        CORES %        MEMORY MiB  CONTAINERS\n"
        "gpu1  2: 1 shared, 1 exclusive  95/110/200  9300/16133/30218           2\n"
        "gpu2  2: 2 free                    0/0/200         0/0/30218           0\n"
        "cores and memory: used/given/total\n"
    )


def test_agents_that_run_without_pods_are_asked_through_their_nodes(top: Top) -> None:
    assert top({**BOTH, "cpu1": None}, in_pods=False) == top(BOTH)


def test_pods_are_listed_by_name_with_their_nodes(top: Top) -> None:
    assert top(BOTH, "pods").out == (
        "CONTAINER@NODE                 CARD  CORES % USED/GIVEN  MEMORY MiB USED/GIVEN  PROCESSES\n"
        "default/vcuda/tensorflow@gpu1  0                   5/10               300/1024  7\n"
        "default/work/tensorflow@gpu1   1                 90/100             9000/15109  8\n"
    )


@pytest.mark.parametrize(
    "fence", [fence for fence in fences(ROOT / "docs" / "top.md") if fence.language == "text"], ids=str
)
def test_it_prints_what_the_page_shows(top: Top, fence: Fence) -> None:
    command, _, shown = fence.text.partition("\n")
    assert command.startswith("$ halfcard top")
    assert top(BOTH, *command.removeprefix("$ halfcard top").split()).out == shown


def test_one_node_is_shown_card_by_card(top: Top) -> None:
    assert top(BOTH, "--node", "gpu1").out == usage_text(GPU1)


def test_a_namespace_leaves_only_its_pods(top: Top) -> None:
    assert top(BOTH, "pods", "-n", "team").out == "no container has cards\n"
    assert "vcuda" in top(BOTH, "pods", "-n", "default").out


def test_the_json_has_all_usage(top: Top) -> None:
    found: dict[str, Any] = json.loads(top({**BOTH, "gpu3": REFUSES}, "-o", "json").out)
    assert [node["node"] for node in found["nodes"]] == ["gpu1", "gpu2"]
    assert found["nodes"][0]["containers"][1]["cards"][0]["used_mib"] == 9000
    assert [silent["node"] for silent in found["silent"]] == ["gpu3"]


SILENT: Final[dict[str, tuple[str | bytes, str]]] = {
    "nothing listens there": (REFUSES, "connection refused"),
    "it hangs": (HANGS, "no answer to GET"),
    "something else listens there": (b"<html>", "the answer is not an agent's"),
}


@pytest.mark.parametrize(("answer", "why"), SILENT.values(), ids=SILENT.keys())
def test_a_node_that_does_not_answer_is_one_line_and_affects_nothing_else(
    top: Top, monkeypatch: pytest.MonkeyPatch, answer: str | bytes, why: str
) -> None:
    monkeypatch.setattr(cli.inputs.agent_usage, "_PATIENCE_S", 0.5)
    printed = top({**BOTH, "gpu9": answer})
    assert (printed.code, printed.out) == (0, top(BOTH).out)
    joined = " ".join(printed.err.split())
    assert joined.startswith("Warning: gpu9: its agent does not answer: ") and why in joined


PORT: Final = "the API server must reach port 5679 of the agents: check that their pods run"


@pytest.mark.parametrize("answer", [REFUSES, HANGS])
def test_agents_that_cannot_be_reached_say_once_which_port_to_check(
    top: Top, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(cli.inputs.agent_usage, "_PATIENCE_S", 0.5)
    assert " ".join(top({**BOTH, "gpu8": answer, "gpu9": answer}).err.split()).count(PORT) == 1
    assert " ".join(top({"gpu9": answer}).err.split()).count(PORT) == 1


def test_something_else_that_answers_there_is_no_question_of_the_port(top: Top) -> None:
    assert PORT not in " ".join(top({**BOTH, "gpu9": b"<html>"}).err.split())


def test_many_nodes_that_hang_do_not_use_up_the_time_of_the_others(top: Top, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cli.inputs.agent_usage, "_PATIENCE_S", 1.5
    )  # enough for agents that answer, on a busy machine too
    hanging = {f"a{number:02}": HANGS for number in range(3 * cli.inputs.agent_usage._AT_ONCE)}
    printed = top({**hanging, **BOTH})
    assert [line.split()[0] for line in printed.out.splitlines()] == ["NODE", "gpu1", "gpu2", "cores"]


UNUSABLE: Final[dict[str, tuple[dict[str, str | bytes | None], list[str], str]]] = {
    "no agent answers": ({"gpu1": REFUSES}, [], "no agent answers; gpu1"),
    "the node is not there": ({"gpu1": b""}, ["--node", "gpu7"], "node gpu7 does not exist, or has no agent"),
    "the node has no agent": ({"cpu1": None}, ["--node", "cpu1"], "node cpu1 does not exist, or has no agent"),
}


@pytest.mark.parametrize(("agents", "arguments", "why"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_nodes_that_cannot_be_shown_exit_2(
    top: Top, agents: dict[str, str | bytes | None], arguments: list[str], why: str
) -> None:
    printed = top(agents, *arguments)
    assert (printed.code, printed.out) == (2, "")
    assert why in printed.err


def test_a_cluster_without_agents_is_no_error(top: Top) -> None:
    printed = top({"cpu1": None})
    assert (printed.code, printed.out) == (0, "no node has an agent\n")


def test_an_unreachable_api_server_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cluster_of(tmp_path, {}) as kubeconfig:
        pass
    assert main(["top", "--kubeconfig", str(kubeconfig)]) == 2
    assert "the API server cannot be reached" in capsys.readouterr().err


def test_foreign_processes_and_unhealthy_cards_are_warnings_of_the_overview(top: Top) -> None:
    sick = replace(NODE, cards=(NODE.cards[0], replace(NODE.cards[1], why_not="Xid 79")))
    seen = usage([], {"GPU-0": load(Process(7, 300, 5))}, node=sick)
    printed = top({"gpu1": usage_json(seen)})
    assert "1 free, 1 out of order" in printed.out
    assert printed.err == (
        "Warning: gpu1: card 0: process 7 uses 300 MiB: it belongs to no pod\n"
        "Warning: gpu1: card 1 gets nothing new: Xid 79\n"
    )


def test_unknown_usage_is_a_question_mark(top: Top) -> None:
    assert " ?/10/200 " in top({"gpu1": usage_json(usage([SEED], {}))}).out


def test_long_names_stay_within_a_hundred_columns_and_control_characters_are_escaped(top: Top) -> None:
    long = tenant(tensorflow(core=10, memory=4), "p" * 200, apps=["tensorflow"])
    steering = replace(NODE, cards=(replace(NODE.cards[0], model="\x1b[31m", why_not="\x1b[2J" * 50),))
    agents: dict[str, str | bytes | None] = {"n" * 200: usage_json(usage([long], node=steering))}
    for arguments in ([], ["pods"], ["--node", "n" * 200]):
        printed = top(agents, *arguments)
        assert too_wide(printed.out + printed.err) == [] and "\x1b" not in printed.out + printed.err
