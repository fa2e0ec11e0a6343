from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.__main__ import main
from cli.output.gpushare_table import tabbed
from halfcard import names
from tests.builders import device_class, pod, resource_slice

from .command import ROOT, halfcard, too_wide
from .list_server import kubeconfig_of

Inspect = Callable[..., str]
MIXED = ROOT / "deploy" / "examples" / "tuya-half-cards" / "cluster.yaml"


def node(name: str, capacity: dict[str, str], address: str = "") -> dict[str, Any]:
    addresses = [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": address}] if address else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": capacity, "addresses": addresses},
    }


def gpushare_node(name: str = "10.81.25.224", gib: int = 14, cards: int = 1) -> dict[str, Any]:
    return node(name, {"aliyun.com/gpu-mem": str(gib), "aliyun.com/gpu-count": str(cards)}, name)


def sharing(name: str, gib: int, card: int | None, on: str = "10.81.25.224") -> dict[str, Any]:
    annotations = {} if card is None else {names.ALIYUN_INDEX: str(card), names.ALIYUN_POD_TOTAL: str(gib)}
    return pod(name).created("default").asks(gpu_mem=gib).annotated(annotations).on(on).manifest


@pytest.fixture
def inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Inspect:
    """What the command prints of these objects."""

    def printed(objects: list[dict[str, Any]], *arguments: str) -> str:
        dump = tmp_path / "dump.json"
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        assert main(["inspect", "--state", str(dump), *arguments]) == 0
        return capsys.readouterr().out

    return printed


# --- as kubectl-inspect-gpushare prints

THREE = [sharing(f"binpack-1-{at}", 1, 0) for at in "abc"]
SUMMARIES = {
    "the node without pods": (
        [gpushare_node()],
        """\
NAME          IPADDRESS     GPU0(Allocated/Total)  GPU Memory(GiB)
10.81.25.224  10.81.25.224  0/14                   0/14
--------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
0/14 (0%)··
""",
    ),
    "the node with three pods of 1 GiB": (
        [gpushare_node(), *THREE],
        """\
NAME          IPADDRESS     GPU0(Allocated/Total)  GPU Memory(GiB)
10.81.25.224  10.81.25.224  3/14                   3/14
--------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
3/14 (21%)··
""",
    ),
    "a pod that has no record is pending": (
        [gpushare_node(), *THREE, sharing("bypassed", 2, None)],
        """\
NAME          IPADDRESS     GPU0(Allocated/Total)  PENDING(Allocated)  GPU Memory(GiB)
10.81.25.224  10.81.25.224  3/14                   2                   5/14
----------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
5/14 (35%)··
""",
    ),
    "nodes of several sizes, one without cards, one without an address": (
        [
            gpushare_node("10.0.0.1", 28, 2),
            node("n2", {"aliyun.com/gpu-mem": "14", "aliyun.com/gpu-count": "1"}),
            node("cpu", {}),
            sharing("p", 2, None, "n2"),
        ],
        """\
NAME      IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)  PENDING(Allocated)  GPU Memory(GiB)
10.0.0.1  10.0.0.1   0/14                   0/14                                       0/28
n2        unknown    0/14                   0/0                    2                   2/14
------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
2/42 (4%)··
""",
    ),
}


@pytest.mark.parametrize(("objects", "expected"), SUMMARIES.values(), ids=SUMMARIES.keys())
def test_the_summary_is_gpushares_byte_for_byte(inspect: Inspect, objects: list[Any], expected: str) -> None:
    assert inspect(objects, "--format", "gpushare") == visible(expected)


def test_the_details_are_gpushares_byte_for_byte(inspect: Inspect) -> None:
    objects = [gpushare_node(gib=28, cards=2), sharing("a", 3, 0), sharing("long-name", 4, 1), sharing("c", 2, None)]
    rows = ("a\tdefault\t3\t0\t0\t\n", "long-name\tdefault\t0\t4\t0\t\n", "c\tdefault\t0\t0\t2\t\n")
    rule = "-" * (len("".join(rows)) + 10)
    assert inspect(objects, "-d", "--format", "gpushare") == visible(f"""\

NAME:       10.81.25.224
IPADDRESS:  10.81.25.224

NAME         NAMESPACE  GPU0(Allocated)  GPU1(Allocated)  Pending(Allocated)··
a            default    3                0                0···················
long-name    default    0                4                0···················
c            default    0                0                2···················
Allocated :  9 (32%)····
Total :      28·········
{rule}


Allocated/Total GPU Memory In Cluster:  9/28 (32%)··
""")


def visible(text: str) -> str:
    """Blanks at the end of a line are written as dots here, so that no editor removes them."""
    return text.replace("·", " ")


def test_amounts_in_mib_have_the_unit_mib(inspect: Inspect, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("aliyun_memory_unit: MiB\n")
    objects = [gpushare_node(gib=15109), sharing("p", 2048, 0)]
    output = inspect(objects, "--format", "gpushare", "--settings", str(settings)).splitlines()
    assert output[0].endswith("GPU Memory(MiB)")
    assert output[1].endswith("2048/15109")


def test_columns_are_as_wide_as_the_lines_around_them_need() -> None:
    assert tabbed(["a\tb\tc\nlong\tx\n\nd\te\n"]) == "a     b  c\nlong  x\n\nd  e\n"


# --- our own table


def test_the_overview_has_a_line_for_each_node(inspect: Inspect) -> None:
    objects = [gpushare_node("n1", 28, 2), gpushare_node("n2"), node("cpu", {}), sharing("p", 7, 0, "n2")]
    output = inspect(objects).splitlines()
    assert [line.split() for line in output[1:3]] == [
        ["n1", "2:", "2", "free", "0/200", "0/28672", "0"],
        ["n2", "1:", "1", "shared", "0/100", "7168/14336", "1"],
    ]
    assert output[3] == "1 node has no GPU"


def test_the_mixed_node_shows_the_numbers_of_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "-d", "--state", str(MIXED)]) == 0
    output = capsys.readouterr().out
    for line in (
        "nvidia.com/gpu: 1 (1 in use)",
        "tuya.com/sgpu: 4 (2 in use)",
        "tuya.com/vcuda-memory: 86 (10 in use)",
    ):
        assert f"  {line}\n" in output
    assert "tencent.com" not in output
    assert "card 0  NVIDIA-A10  GPU-0a  halves 1/2  50/100 %  11008/22016 MiB\n    default/notebook" in output


def test_details_name_guesses_cordons_and_pods_on_no_card(inspect: Inspect) -> None:
    there = gpushare_node("n1", 28, 2)
    there["metadata"]["annotations"] = {names.CORDONED_CARDS: "1"}
    output = inspect([there, node("cpu", {}), sharing("guess", 2, None, "n1"), sharing("lost", 2, None, "cpu")], "-d")
    assert "default/guess  2048 MiB  not recorded: guessed" in output
    assert "gets no new pods: cordoned" in output
    assert "  no card  default/lost\n" in output


def test_a_namespace_leaves_only_its_pods_on_all_cards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "-d", "-n", "team", "--state", str(MIXED)]) == 0
    shown = capsys.readouterr().out
    assert "default/" not in shown and "card 3  NVIDIA-A10  GPU-3d  exclusive  100/100 %" in shown
    assert main(["inspect", "-d", "-A", "--state", str(MIXED)]) == 0
    assert "default/notebook" in capsys.readouterr().out
    assert main(["inspect", "--format", "gpushare", "-n", "team", "--state", str(MIXED)]) == 2
    assert "leave out one of them" in capsys.readouterr().err


def test_one_node_is_shown_in_detail(inspect: Inspect) -> None:
    output = inspect([gpushare_node("n1"), gpushare_node("n2")], "n2")
    assert "card 0" in output and "n1" not in output


def test_json_holds_everything(inspect: Inspect) -> None:
    output = json.loads(inspect([gpushare_node(), *THREE], "-o", "json"))
    (one,) = output["nodes"]
    assert one["resources"]["aliyun.com/gpu-mem"] == {"total": 14, "used": 3}
    assert [each["name"] for each in one["cards"][0]["pods"]] == ["binpack-1-a", "binpack-1-b", "binpack-1-c"]
    assert output["doubts"] == []


def test_json_in_gpushares_format_equals_the_answer_of_its_extender(inspect: Inspect) -> None:
    (one,) = json.loads(inspect([gpushare_node(), *THREE], "--format", "gpushare", "-o", "json"))["nodes"]
    assert (one["name"], one["totalGPU"], one["usedGPU"], len(one["devs"][0]["pods"])) == ("10.81.25.224", 14, 3, 3)


def test_lines_fit_a_hundred_columns_however_long_the_names(inspect: Inspect) -> None:
    name = "gpu-" + "x" * 90
    objects = [gpushare_node(name, 28, 2), sharing("p" * 90, 2, 0, name)]
    for arguments in ((), ("-d",)):
        output = inspect(objects, *arguments)
        assert too_wide(output) == [] and "\x1b" not in output and name in output


# --- what cannot be as it should


def test_doubts_are_warnings_and_affect_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = [gpushare_node(), node("odd", {"tencent.com/vcuda-core": "50"}), sharing("big", 99, 0)]
    broken = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "broken"}, "spec": {"containers": {}}}
    (tmp_path / "state.json").write_text(json.dumps({"kind": "List", "items": [*objects, broken]}))

    assert main(["inspect", "--state", str(tmp_path)]) == 0

    said = capsys.readouterr()
    output = " ".join(said.err.split())
    for part in ("Warning: node odd is left out", "pod default/big", "the pod is left out: Expected"):
        assert part in output
    assert "10.81.25.224" in said.out and "odd" not in said.out


UNUSABLE = {
    "no such node": (["inspect", "none", "--state", str(MIXED)], "node none does not exist"),
    "no such folder": (["inspect", "--state", "/nowhere"], "/nowhere:1: cannot be read"),
    "no such kubeconfig": (["inspect", "--kubeconfig", "/nowhere"], "/nowhere: cannot be read"),
    "no such settings": (["inspect", "--state", str(MIXED), "--settings", "/nowhere"], "/nowhere: cannot be read"),
}


@pytest.mark.parametrize(("arguments", "message"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_unreadable_input_exits_2_with_the_reason(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"halfcard inspect: {message}")


# --- an API server


def test_a_cluster_is_read_page_by_page_as_its_kubeconfig_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = [sharing(f"p{at}", 1, 0) for at in range(5)]
    for each in pods:
        each["metadata"]["uid"] = each["metadata"]["name"]
    odd = {"metadata": {"name": "odd", "namespace": "ns"}, "spec": {"containers": 3}}
    with kubeconfig_of(tmp_path, {"/api/v1/nodes": [gpushare_node()], "/api/v1/pods": [*pods, odd]}) as file:
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none:{file}")
        assert main(["inspect", "--format", "gpushare"]) == 0
    said = capsys.readouterr()
    assert "\n5/14 (35%)  \n" in said.out
    assert "Warning: pod ns/odd is left out" in said.err


def test_several_kubeconfigs_are_merged_as_kubectl_merges_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.write_text('{"clusters": [{"name": "d", "cluster": {}}]}')
    with kubeconfig_of(tmp_path, {"/api/v1/nodes": [], "/api/v1/pods": []}) as file:
        monkeypatch.setenv("KUBECONFIG", f"{other}:{tmp_path}/none:{file}")
        assert main(["inspect", "-o", "json"]) == 0
    assert "nodes" in capsys.readouterr().out


def test_a_group_without_a_user_to_act_as_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kubeconfig_of(tmp_path, {}) as file:
        assert main(["inspect", "--kubeconfig", str(file), "--as-group", "g"]) == 2
        assert main(["inspect", "--server", "http://127.0.0.1:1", "--as-group", "g"]) == 2
    assert capsys.readouterr().err.count("need a user to act as; add --as") == 2


@pytest.mark.parametrize(
    ("command", "fix"), [("inspect", "--kubeconfig, or a dump with --state"), ("top", "--kubeconfig")]
)
def test_without_a_kubeconfig_the_error_names_the_searched_paths(tmp_path: Path, command: str, fix: str) -> None:
    done = halfcard(command, environment={"HOME": str(tmp_path), "KUBECONFIG": ""})
    assert done.code == 2
    assert done.err.endswith(f"{tmp_path}/.kube/config: found no kubeconfig; name one with {fix}\n")


def test_the_servers_error_message_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kubeconfig_of(tmp_path, {"/api/v1/nodes": []}) as file:
        assert main(["inspect", "--kubeconfig", str(file)]) == 2
    assert "403 to GET /api/v1/pods: /api/v1/pods is forbidden" in capsys.readouterr().err


def test_an_unreachable_server_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kubeconfig_of(tmp_path, {}) as file:
        pass
    assert main(["inspect", "--kubeconfig", str(file)]) == 2
    assert "127.0.0.1:" in (said := capsys.readouterr().err) and "cannot be reached" in said


def test_a_node_of_a_driver_is_shown_with_the_driver_and_its_pods(inspect: Inspect) -> None:
    training = pod("training").created("default").asks(gpu=1).on("dra1").manifest
    objects = [node("dra1", {"cpu": "8"}), device_class(), resource_slice("dra1"), training]
    assert inspect(objects).splitlines()[1].split() == ["dra1", "of", "gpu.nvidia.com", "0/?", "0/?", "1"]
    assert inspect(objects, "dra1").splitlines() == [
        "dra1",
        "  nvidia.com/gpu: 1 (1 in use)",
        "  cards of gpu.nvidia.com, which kube-scheduler allocates (DRA)",
        "  default/training",
    ]


def test_a_slice_that_cannot_be_read_changes_nothing(inspect: Inspect) -> None:
    broken = {**resource_slice("dra1"), "spec": {"driver": 7}}
    assert inspect([node("dra1", {}), device_class(), broken]) == "1 node has no GPU\n"
