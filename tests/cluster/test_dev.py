"""`halfcard dev` from its command line: a real cluster that outlives the command, works, and leaves nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from devcluster.build import binaries
from devcluster.control_plane.client import CommandResult
from devcluster.control_plane.supervisor import COMPONENTS
from devcluster.dev import real_node, steps
from devcluster.dev.state import DevFolder
from devcluster.nodes.cgroups import node_cgroups
from devcluster.nodes.namespaces import only_child
from devcluster.waiting import wait_until
from halfcard import names
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK, EXIT_REFUSED, EXIT_USAGE

from .test_harness import interfaces, processes_with

CHECKOUT = Path(__file__).parents[2]
REAL = real_node.NODE
PARTS = [
    *(*COMPONENTS, "kwok", "halfcard-admission-1", "halfcard-quota-1", "halfcard-extender-1"),
    *(f"kubelet of {REAL}", f"agent of {REAL}"),
]


def halfcard_dev(*arguments: str, environment: Mapping[str, str] | None = None) -> CommandResult:
    command = [sys.executable, "-m", "cli", "dev", *arguments]
    env = os.environ | (environment or {})
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=240, env=env, check=False)
    return CommandResult(done.returncode, done.stdout, done.stderr)


def status(folder: Path) -> Any:
    return json.loads(halfcard_dev("status", "--dir", str(folder), "-o", "json").stdout)


def interface_of(server: str) -> str:
    """Returns the host interface of the cluster's link; each link has four addresses."""
    address = ip_address(str(urlsplit(server).hostname))
    return f"halfcard{(int(address) - int(ip_address('198.18.0.0'))) // 4}"


@dataclass(frozen=True)
class Development:
    folder: Path
    printed: str

    def shell(self, command: str) -> CommandResult:
        """Runs a command with only the exports that `up` printed."""
        exports = "\n".join(re.findall(r"^export .*", self.printed, re.MULTILINE))
        done = subprocess.run(["sh", "-c", f"{exports}\n{command}"], capture_output=True, text=True, check=False)
        return CommandResult(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def plan() -> str:
    """The plan before anything is built."""
    return steps.plan()


@pytest.fixture(scope="module")
def development(plan: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Development]:  # noqa: ARG001  (first)
    folder = tmp_path_factory.mktemp("dev") / "new"
    done = halfcard_dev("up", "--dir", str(folder))
    assert done.code == EXIT_OK, done
    try:
        yield Development(folder, done.stdout)
    finally:
        assert halfcard_dev("down", "--dir", str(folder)).code == EXIT_OK


@pytest.fixture
def few_programs(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine without iproute2, where a cluster uses loopback, as without root."""
    for name in ("setpriv", "sh"):
        program = shutil.which(name)
        assert program is not None
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(program)
    return {"PATH": str(tmp_path / "bin")}


# --- a running cluster -----------------------------------------------------------------------------------------------


def test_up_prints_the_plan_first_and_then_the_exports(plan: str, development: Development) -> None:
    lines = development.printed.splitlines()
    assert lines[0] == plan
    assert f"export KUBECONFIG={development.folder}/kubeconfig" in lines


def test_the_printed_commands_work(development: Development) -> None:
    commands = re.findall(r"^   (kubectl .*)$", development.printed, re.MULTILINE)
    console, wrong, quota, together, apart, budget, real, node = (development.shell(command) for command in commands)
    assert console.code == 0, console.stderr
    amounts = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}
    assert json.loads(console.stdout.splitlines()[-1]) == {"limits": amounts, "requests": amounts}
    assert wrong.code == 1 and 'got "150"' in wrong.stderr and "[HC002]" in wrong.stderr
    assert quota.code == 0, quota.stderr
    counted = {line.split()[0]: line.split()[1:] for line in quota.stdout.splitlines() if names.TENCENT in line}
    assert counted[f"requests.{names.VCUDA_CORE}"] == ["30", "200"]
    assert together.code == 0, together.stderr
    (card,) = [card for card in re.split(r"^  card ", together.stdout, flags=re.MULTILINE) if "default/console" in card]
    assert "60/100 %" in card and "default/nginx" in card and "not recorded" not in card
    assert apart.code == EXIT_REFUSED, apart.stderr
    assert "  1 node: no card has 14336 MiB free (gpushare-nvidia-a10-0000)\n" in apart.stdout
    assert len(re.findall(r"8192 MiB free +1 pod", apart.stdout)) == 2
    assert budget.code == 0, budget.stderr
    assert "exceeded quota: team/gpu, requested: shares=1" in budget.stderr
    assert re.search(r"^  shares +1 +1 +0$", budget.stdout, re.MULTILINE)
    assert real.code == 0, real.stderr
    card = re.search(r"^card (GPU-\S+)$", real.stdout, re.MULTILINE)
    assert card is not None
    limits = json.loads(real.stdout[real.stdout.index("{") :])
    assert [(each["uuid"], each["cores_pct"], each["memory_mib"]) for each in limits["cards"]] == [(card[1], 30, 5120)]
    assert "HALFCARD_MEMORY_MIB=5120\n" in real.stdout
    assert node.code == 0, node.stderr
    assert re.search(rf"^ *{names.VCUDA_CORE}: +400$", node.stdout, re.MULTILINE)  # kubectl describe
    assert re.search(rf"{card[1]}  shared  30/100 %  5120/15109 MiB\n    default/real ", node.stdout)  # inspect
    assert re.search(r"^default/real/main +0 +0/30 +0/5120", node.stdout, re.MULTILINE)  # top


def test_only_pods_that_select_the_real_node_run_there(development: Development) -> None:
    """The real node pulls no images; kwok's nodes show any pod as running."""
    pods = development.shell("kubectl get pods -A -o json").stdout
    running = [pod["metadata"]["name"] for pod in json.loads(pods)["items"] if pod["spec"].get("nodeName") == REAL]
    assert running == ["real"]


def test_pods_are_scheduled_and_run(development: Development) -> None:
    example = CHECKOUT / "deploy/examples/gpu-manager/manifests/vcuda20.yaml"
    done = development.shell(
        f"kubectl create namespace run && kubectl -n run create -f {example} && "
        "kubectl -n run wait pod --all --for=condition=Ready --timeout=60s"
    )
    assert done.code == 0, done.stderr


# --- status ----------------------------------------------------------------------------------------------------------


def test_status_names_every_part_and_its_health(development: Development) -> None:
    found = status(development.folder)
    assert found["healthy"] is True
    assert [part["name"] for part in found["parts"]] == PARTS
    shown = halfcard_dev("status", "--dir", str(development.folder))
    assert shown.code == EXIT_OK
    assert all(re.search(rf"^  {part} +healthy$", shown.stdout, re.MULTILINE) for part in PARTS)


def test_status_names_the_part_that_does_not_answer_and_its_log(development: Development) -> None:
    kwok = next(part for part in status(development.folder)["parts"] if part["name"] == "kwok")
    os.kill(kwok["pid"], signal.SIGSTOP)
    try:
        shown = halfcard_dev("status", "--dir", str(development.folder))
    finally:
        os.kill(kwok["pid"], signal.SIGCONT)
    assert shown.code == EXIT_REFUSED
    assert re.search(rf"^  kwok +does not answer, see {re.escape(kwok['log'])}$", shown.stdout, re.MULTILINE)
    assert Path(kwok["log"]).is_file()


def test_status_asks_the_agent_itself(development: Development) -> None:
    agent = next(part for part in status(development.folder)["parts"] if part["name"] == f"agent of {REAL}")
    program = only_child(agent["pid"])
    os.kill(program, signal.SIGSTOP)
    try:
        shown = halfcard_dev("status", "--dir", str(development.folder))
    finally:
        os.kill(program, signal.SIGCONT)
        os.kill(agent["pid"], signal.SIGCONT)  # nsenter stops with its child
    assert re.search(rf"^  agent of {REAL} +does not answer", shown.stdout, re.MULTILINE)


def test_a_second_up_says_that_it_runs_and_starts_nothing(development: Development) -> None:
    before = DevFolder(development.folder).pid()
    done = halfcard_dev("up", "--dir", str(development.folder))
    assert done.code == EXIT_OK and "It is running already." in done.stdout
    assert f"export KUBECONFIG={development.folder}/kubeconfig" in done.stdout
    assert DevFolder(development.folder).pid() == before


# --- down ------------------------------------------------------------------------------------------------------------


def mounts_with(text: str) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if text in line]


def cgroups_of(folder: Path) -> list[Path]:
    clusters = {each.name for each in folder.glob("cluster/*/*")}
    return [each for each in node_cgroups() if each.name.removeprefix("halfcard-").split(".")[0] in clusters]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of a cluster that is stopped at the end of the test."""
    yield (found := tmp_path / "dev")
    if found.exists():
        halfcard_dev("down", "--dir", str(found))


@pytest.mark.parametrize("killed", [False, True])
def test_down_leaves_nothing_and_can_be_repeated(folder: Path, *, killed: bool) -> None:
    up = halfcard_dev("up", "--dir", str(folder))
    assert up.code == EXIT_OK
    pod = f"kubectl create -f {real_node.POD} && kubectl wait --for=condition=Ready --timeout=60s pod/real"
    assert Development(folder, up.stdout).shell(pod).code == 0
    interface = interface_of(status(folder)["server"])
    groups = cgroups_of(folder)
    assert interface in interfaces() and groups
    assert len(processes_with(str(folder))) > len(PARTS)
    if killed:
        os.kill(DevFolder(folder).pid(), signal.SIGKILL)
    for _ in range(2):
        assert halfcard_dev("down", "--dir", str(folder)).code == EXIT_OK
        wait_until(lambda: not processes_with(str(folder)), what="every program to end with its supervisor")
        assert not folder.exists() and mounts_with(str(folder)) == []
        assert not [group for group in groups if group.exists()]
    wait_until(lambda: interface not in interfaces(), what="the interface to be deleted with its namespace")


def test_without_root_or_iproute2_it_works_on_loopback_and_survives_a_kill(
    folder: Path, few_programs: dict[str, str]
) -> None:
    up = halfcard_dev("up", "--dir", str(folder), environment=few_programs)
    assert up.code == EXIT_OK, up
    missing = (
        "No node runs pods, all nodes are kwok's: busybox-static, iproute2, runc, util-linux missing: run `apt-get"
    )
    assert missing in up.stdout and "pod/real" not in up.stdout
    assert missing in halfcard_dev("status", "--dir", str(folder)).stdout
    wrong = CHECKOUT / "deploy/examples/mistakes/manifests/amounts/05-150-per-cent.yaml"
    user = Development(folder, up.stdout)
    assert "[HC002]" in user.shell(f"kubectl create -f {wrong}").stderr
    one_card = CHECKOUT / "deploy/examples/gpu-manager/manifests/one-card.yaml"
    bound = f"kubectl create -f {one_card} && kubectl wait --for=condition=PodScheduled --timeout=60s pod/one-card"
    explained = user.shell(f"{bound} && halfcard explain default/one-card")
    assert "its cards recorded by Halfcard" in " ".join(explained.stdout.split()), explained
    assert status(folder)["server"].startswith("https://127.0.0.1:")
    os.kill(DevFolder(folder).pid(), signal.SIGKILL)
    wait_until(lambda: not processes_with(str(folder)), what="every program to end with its supervisor")
    assert halfcard_dev("status", "--dir", str(folder)).code == EXIT_REFUSED
    again = halfcard_dev("up", "--dir", str(folder), environment=few_programs)
    assert again.code == EXIT_OK, again
    assert halfcard_dev("down", "--dir", str(folder)).code == EXIT_OK
    assert not folder.exists() and processes_with(str(folder)) == []


def test_without_a_cluster_status_says_so_and_down_succeeds(tmp_path: Path) -> None:
    folder = str(tmp_path / "nothing")
    shown = halfcard_dev("status", "--dir", folder)
    assert (shown.code, shown.stdout) == (
        EXIT_REFUSED,
        f"{folder}: nothing is running; `halfcard dev up` starts it\n",
    )
    assert halfcard_dev("down", "--dir", folder).code == EXIT_OK
    assert not Path(folder).exists()


# --- failures to start ------------------------------------------------------------------------------------------------


def test_a_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years of work")
    for action in ("up", "down"):
        done = halfcard_dev(action, "--dir", str(tmp_path))
        assert done.code == (EXIT_USAGE if action == "up" else EXIT_OK)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_missing_program_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    done = halfcard_dev("up", "--dir", str(tmp_path / "dev"), environment={"PATH": str(tmp_path)})
    assert done.code == EXIT_CANNOT_START
    assert "apt-get install util-linux" in done.stderr


def test_a_program_that_ends_early_is_reported_and_nothing_is_left_running(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for name in ("control-plane", "kwok", *real_node.GROUPS):
        built = binaries.build_folder(binaries.GROUPS[name].module)
        copy = cache / "halfcard" / "cluster-tools" / built.name
        copy.mkdir(parents=True, exist_ok=True)
        for program in binaries.GROUPS[name].packages:
            (copy / program).symlink_to("/bin/false" if program == "etcd" else built / program)
    done = halfcard_dev("up", "--dir", str(tmp_path / "dev"), environment={"XDG_CACHE_HOME": str(cache)})
    assert done.code == EXIT_CANNOT_START
    assert "etcd ended by itself" in done.stderr
    assert not (tmp_path / "dev").exists() and processes_with(str(tmp_path / "dev")) == []


def test_the_plan_of_a_cold_build_names_programs_minutes_and_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    printed = steps.plan()
    programs = ("etcd", "kube-apiserver", "kubectl", "kwok", "kubelet", "containerd")
    assert all(program in printed for program in programs)
    assert re.search(r"about \d+ minutes on 2 cores and \d+ GB of disk", printed)


def test_the_plan_omits_kubelet_if_no_real_node_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_programs: dict[str, str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", few_programs["PATH"])
    assert "kwok" in steps.plan()
    assert "kubelet" not in steps.plan() and "containerd" not in steps.plan()


def test_the_price_of_groups_counts_shared_packages_once() -> None:
    first, second = binaries.GROUPS["control-plane"], binaries.GROUPS["node"]
    assert binaries.price([first]) == (first.minutes, first.gigabytes)
    minutes, gigabytes = binaries.price([first, second])
    assert first.minutes < minutes < first.minutes + second.minutes
    assert first.gigabytes < gigabytes < first.gigabytes + second.gigabytes


def test_dev_without_a_checkout_of_the_source_is_refused(tmp_path: Path) -> None:
    for package in ("admission", "certs", "cli", "extender", "halfcard", "kube", "serving", "settings"):
        shutil.copytree(CHECKOUT / package, tmp_path / package)
    command = [sys.executable, "-m", "cli", "dev", "up"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_CANNOT_START
    assert "is not a checkout of the source" in done.stderr
