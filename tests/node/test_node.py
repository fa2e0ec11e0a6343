"""A real node of the test harness runs pods, and leaves nothing on the machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.control_plane.network import loopback_network
from devcluster.errors import CannotStartError
from devcluster.nodes.cgroups import node_cgroup, node_cgroups
from devcluster.nodes.namespaces import NodeNamespaces
from devcluster.nodes.node import RealNode
from devcluster.nodes.node_network import node_network
from devcluster.scratch import scratch_folder
from devcluster.waiting import wait_until
from tests.cluster.pods import busybox_pod, create_pod, get_pod, pod_log, run_pod, wait_for_phase

CHECKOUT = Path(__file__).parents[2]
FIXED_FOLDERS = ("/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/run/containerd", "/opt/containerd")
TUNABLES = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
# The HTTP/2 preface of gRPC clients, and an empty SETTINGS frame.
HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
SETTINGS = 4


def answers_as_grpc(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(path))
        client.sendall(HTTP2_GREETING)
        return client.recv(9)[3] == SETTINGS


def test_a_scheduled_pod_runs_and_its_log_can_be_read(cluster: Cluster, node: RealNode) -> None:
    space = cluster.create_namespace("logged")
    pod = run_pod(cluster, space, busybox_pod("one", "echo I am $(hostname); exec sleep infinity"))
    assert pod["spec"]["nodeName"] == node.name
    assert pod_log(cluster, space, "one") == "I am one\n"
    inside = cluster.kubectl("exec", "one", f"--namespace={space}", "--", "echo", "from within")
    assert inside.stdout == "from within\n"


def test_an_ended_pod_has_its_exit_status(cluster: Cluster, node: RealNode) -> None:
    space = cluster.create_namespace("ended")
    name = create_pod(cluster, space, busybox_pod("three", "exit 3", node=node.name))
    ended = wait_for_phase(cluster, space, name, "Failed")["status"]["containerStatuses"][0]
    assert ended["state"]["terminated"]["exitCode"] == 3


def test_a_pod_reaches_the_api_server_by_the_service_in_its_environment(cluster: Cluster, node: RealNode) -> None:
    space = cluster.create_namespace("calling")
    script = "nc -w 10 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo connected"
    name = create_pod(cluster, space, busybox_pod("caller", script, node=node.name))
    wait_for_phase(cluster, space, name, "Succeeded")
    assert pod_log(cluster, space, name) == "connected\n"


def test_pods_on_two_nodes_reach_each_other(cluster: Cluster, node: RealNode) -> None:
    space = cluster.create_namespace("paired")
    with RealNode(cluster, "node-b") as other:
        serve = "echo hello from $(hostname) | nc -l -p 8000"
        server = run_pod(cluster, space, busybox_pod("server", serve, node=other.name))
        call = f"until nc -w 5 {server['status']['podIP']} 8000 </dev/null; do :; done"
        client = create_pod(cluster, space, busybox_pod("client", call, node=node.name))
        wait_for_phase(cluster, space, client, "Succeeded")
        assert pod_log(cluster, space, client) == "hello from server\n"
        assert server["status"]["hostIP"] == other.network.address != node.network.address


def test_each_node_has_its_own_kubelet_sockets_at_the_usual_paths(cluster: Cluster, node: RealNode) -> None:
    with RealNode(cluster, "node-c") as other:
        for each in (node, other):
            assert answers_as_grpc(each.device_plugins / "kubelet.sock")
            assert answers_as_grpc(each.pod_resources)
            assert each.run("test", "-S", "/var/lib/kubelet/device-plugins/kubelet.sock").code == 0
        with socket.socket(socket.AF_UNIX) as plugin:
            plugin.bind(str(other.device_plugins / "plugin.sock"))
            plugin.listen()
            connect = (
                "import socket; socket.socket(socket.AF_UNIX).connect('/var/lib/kubelet/device-plugins/plugin.sock')"
            )
            assert other.run(sys.executable, "-c", connect).code == 0
            assert node.run(sys.executable, "-c", connect).code == 1
    assert cluster.request("GET", "/api/v1/nodes/node-c").status == 404


def test_a_pod_keeps_running_while_kubelet_is_killed_and_restarted(cluster: Cluster, node: RealNode) -> None:
    space = cluster.create_namespace("steady")
    before = run_pod(cluster, space, busybox_pod("steady", "while sleep 1; do date +%s; done", node=node.name))
    node.kubelet.kill()
    assert not node.kubelet.running()
    assert node.run("pgrep", "-x", "kubelet").code == 1
    node.kubelet.start()
    node.wait_healthy()
    run_pod(cluster, space, busybox_pod("later", "exec sleep infinity", node=node.name))
    after = get_pod(cluster, space, "steady")["status"]
    assert after["phase"] == "Running"
    assert after["containerStatuses"] == before["status"]["containerStatuses"]


def test_a_pod_keeps_running_while_containerd_is_killed_and_restarted(cluster: Cluster, node: RealNode) -> None:
    space = cluster.create_namespace("stable")
    before = run_pod(cluster, space, busybox_pod("stable", "exec sleep infinity", node=node.name))
    node.containerd.kill()
    assert node.run("pgrep", "-x", "containerd").code == 1
    node.containerd.start()
    run_pod(cluster, space, busybox_pod("later", "exec sleep infinity", node=node.name))
    after = get_pod(cluster, space, "stable")["status"]
    assert after["containerStatuses"] == before["status"]["containerStatuses"]


def test_a_paused_kubelet_starts_no_pod_until_it_is_resumed(cluster: Cluster, node: RealNode) -> None:
    space = cluster.create_namespace("paused")
    with RealNode(cluster, "node-g") as other:
        other.kubelet.pause()
        waiting = create_pod(cluster, space, busybox_pod("waiting", "exec sleep infinity", node=other.name))
        run_pod(cluster, space, busybox_pod("meanwhile", "exec sleep infinity", node=node.name))
        left = get_pod(cluster, space, waiting)
        assert (left["spec"]["nodeName"], left["status"]["phase"]) == (other.name, "Pending")
        other.kubelet.resume()
        wait_for_phase(cluster, space, waiting, "Running")


def test_a_test_can_run_a_program_in_the_node_and_terminate_it(node: RealNode) -> None:
    script = "trap 'echo bye; exit 7' TERM; hostname; echo up; while :; do sleep 0.1; done"
    program = node.program("own", "bash", "-c", script)
    node.cluster.wait_until(lambda: "up" in program.log_tail(), what="the program to start")
    assert program.log_tail().splitlines()[0] == node.name
    assert program.terminate() == 7
    assert program.log_tail(1) == "bye"


def traces() -> dict[str, object]:
    """What a node could leave on the machine; interfaces halfcardN belong to clusters, and others may run now."""
    return {
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "interfaces": sorted(each.name for each in Path("/sys/class/net").glob("*") if not each.match("halfcard*")),
        "folders": [folder for folder in FIXED_FOLDERS if Path(folder).exists()],
        "tunables": {each: Path("/proc/sys", each).read_text() for each in TUNABLES},
    }


def process_namespaces(kind: str) -> set[str]:
    """The namespaces of all processes of the machine."""
    found = set()
    for each in Path("/proc").glob(f"[0-9]*/ns/{kind}"):
        try:
            found.add(str(each.readlink()))
        except OSError:  # it ended meanwhile
            continue
    return found


def test_a_closed_node_leaves_nothing_behind(cluster: Cluster) -> None:
    space = cluster.create_namespace("swept")
    before = traces()
    with RealNode(cluster, "node-d") as node:
        run_pod(cluster, space, busybox_pod("busy", "exec sleep infinity", node=node.name))
        namespaces = {kind: str(node.path(f"/proc/1/ns/{kind}").readlink()) for kind in ("pid", "net", "mnt")}
        assert namespaces["pid"] in process_namespaces("pid")
        assert [group for group in node_cgroups() if group.name.endswith(node.name)]
        folder = node.folder
    for kind, namespace in namespaces.items():
        assert namespace not in process_namespaces(kind)
    assert not [group for group in node_cgroups() if group.name.endswith("node-d")]
    assert not folder.exists()
    assert traces() == before


def test_a_killed_test_run_leaves_nothing_behind() -> None:
    before = traces()
    program = textwrap.dedent(f"""
        import os, sys
        sys.path.insert(0, {str(CHECKOUT)!r})
        from devcluster.cluster import Cluster
        from devcluster.nodes.node import RealNode
        from tests.cluster.pods import busybox_pod, run_pod
        with Cluster() as cluster, RealNode(cluster, "doomed") as node:
            run_pod(cluster, "default", busybox_pod("last", "exec sleep infinity"))
            print(os.readlink(node.path("/proc/1/ns/pid")), flush=True)
            sys.stdin.read()
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        namespace = run.stdout.readline().strip()
        assert namespace in process_namespaces("pid")
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    wait_until(lambda: namespace not in process_namespaces("pid"), what="the node's processes to end", seconds=20)
    wait_until(lambda: traces() == before, what="the machine to be as before", seconds=20)
    with scratch_folder() as folder, node_cgroup(folder, "next"):  # the first steps of the next cluster and node
        assert not [group for group in node_cgroups() if group.name.endswith("doomed")]


def test_missing_requirements_of_the_machine_are_named_in_the_error(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotStartError, match="apt-get install busybox-static iproute2 runc util-linux"):
        RealNode(cluster, "node-e").__enter__()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CannotStartError, match="run this as root"):
        RealNode(cluster, "node-e").__enter__()


def test_a_cluster_on_loopback_cannot_have_nodes() -> None:
    with loopback_network() as plain, pytest.raises(CannotStartError, match="without in_namespace"):
        node_network(plain, NodeNamespaces(os.getpid())).__enter__()
