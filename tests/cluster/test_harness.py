"""devcluster does what its README says, with the real programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from devcluster.build import binaries
from devcluster.cluster import Cluster
from devcluster.control_plane import network
from devcluster.control_plane.supervisor import COMPONENTS
from devcluster.errors import CannotStartError, NotReadyError
from devcluster.objects import Object
from devcluster.scratch import scratch_folder
from devcluster.waiting import wait_until

from .webhook_server import webhook_server

CORES = "tencent.com/vcuda-core"
CHECKOUT = Path(__file__).parents[2]


def pod(name: str, cores: int = 0) -> Object:
    wanted = {CORES: str(cores)} if cores else {}
    container = {"name": "main", "image": "none", "resources": {"requests": wanted, "limits": wanted}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def create_pod(cluster: Cluster, namespace: str, item: Object) -> Any:
    return cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods", item)


def interfaces() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir() if path.name.startswith("halfcard")}


def processes_with(text: str) -> list[str]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended meanwhile
            continue
        if text in command:
            found.append(command)
    return found


def test_a_pod_is_scheduled_to_a_node_object(cluster: Cluster) -> None:
    cluster.create_namespace("placed")
    cluster.add_node("node-a", {CORES: "800"})
    create_pod(cluster, "placed", pod("one", cores=30)).must()

    def node() -> Any:
        return cluster.request("GET", "/api/v1/namespaces/placed/pods/one").must()["spec"].get("nodeName")

    cluster.wait_until(lambda: node() is not None, what="the pod to be scheduled")
    assert node() == "node-a"


def test_the_controller_manager_counts_pods_that_are_older_than_a_quota(cluster: Cluster) -> None:
    space = cluster.create_namespace("counted")
    create_pod(cluster, space, pod("before", cores=80)).must()
    quota = {"metadata": {"name": "gpu"}, "spec": {"hard": {f"requests.{CORES}": "100"}}}
    cluster.request("POST", f"/api/v1/namespaces/{space}/resourcequotas", quota).must()

    def used() -> Any:
        status = cluster.request("GET", f"/api/v1/namespaces/{space}/resourcequotas/gpu").must()["status"]
        return status.get("used", {}).get(f"requests.{CORES}")

    cluster.wait_until(lambda: used() == "80", what="the quota to show 80 in use")
    refused = create_pod(cluster, space, pod("too-many", cores=30))
    assert refused.status == 403
    assert f"requested: requests.{CORES}=30, used: requests.{CORES}=80" in refused.body["message"]


def test_the_api_server_restarts_after_sigkill_with_its_state(cluster: Cluster) -> None:
    cluster.create_namespace("stored")
    server = cluster.components["kube-apiserver"]
    first = server.pid
    server.kill()
    with pytest.raises(ConnectionRefusedError):
        cluster.request("GET", "/readyz")
    cluster.components.restart("kube-apiserver")
    assert server.pid != first
    assert cluster.request("GET", "/api/v1/namespaces/stored").ok


def test_a_paused_component_is_silent_until_it_is_resumed(cluster: Cluster) -> None:
    scheduler = cluster.components["kube-scheduler"]
    scheduler.pause()
    try:
        assert not cluster.components.healthy("kube-scheduler")
    finally:
        scheduler.resume()
    cluster.components.wait_ready("kube-scheduler")


def test_users_may_do_what_their_role_says(cluster: Cluster) -> None:
    space = cluster.create_namespace("roles")
    tenant = cluster.tenant(space, "alice")
    account = cluster.service_account(space, "robot")

    def is_allowed(verb: str, what: str, **options: Any) -> bool:
        return cluster.kubectl("auth", "can-i", verb, what, f"--namespace={space}", **options).code == 0

    assert is_allowed("create", "pods", user=tenant)
    assert not is_allowed("create", "resourcequotas", user=tenant)
    assert not is_allowed("get", "pods", user=account)
    assert is_allowed("create", "nodes")
    user = cluster.kubectl("auth", "whoami", "-o=jsonpath={.status.userInfo.username}", user=account)
    assert user.stdout == f"system:serviceaccount:{space}:robot"


def test_a_node_may_change_only_itself(cluster: Cluster) -> None:
    cluster.add_node("node-b", {})
    cluster.add_node("node-c", {})
    user = cluster.node_user("node-b")
    change = '{"metadata":{"labels":{"seen":"yes"}}}'
    assert cluster.kubectl("patch", "node", "node-b", "-p", change, user=user).code == 0
    other = cluster.kubectl("patch", "node", "node-c", "-p", change, user=user)
    assert other.code == 1
    assert "only its own Node object" in other.stderr


def registration(cluster: Cluster, namespace: str) -> str:
    service = {"namespace": namespace, "name": "judge", "port": 443, "path": "/"}
    hook = {
        "name": "judge.halfcard.dev",
        "clientConfig": {"service": service, "caBundle": cluster.authority.bundle()},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 5,
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return json.dumps({**kind, "metadata": {"name": namespace}, "webhooks": [hook]})


def shipped_service() -> Object:
    """Returns a Service as a chart has it: a selector, a named port, a target port by name."""
    spec = {"selector": {"app": "judge"}, "ports": [{"name": "https", "port": 443, "targetPort": "https"}]}
    return {"metadata": {"name": "judge"}, "spec": spec}


@pytest.mark.parametrize("service", [None, shipped_service()], ids=["made-by-expose", "as-shipped"])
def test_a_webhook_is_reached_by_its_service(cluster: Cluster, service: Object | None) -> None:
    space = cluster.create_namespace("judged-shipped" if service else "judged")
    if service:
        cluster.request("POST", f"/api/v1/namespaces/{space}/services", service).must()

    def judge(request: Object) -> Object:
        return {"allowed": False, "status": {"code": 403, "message": f"reviewed {request['name']}"}}

    with webhook_server(cluster, f"judge.{space}.svc", judge) as port:
        cluster.expose(space, "judge", 443, port)
        assert cluster.kubectl("apply", "-f-", stdin=registration(cluster, space)).code == 0
        cluster.wait_until(
            lambda: "reviewed probe" in str(create_pod(cluster, space, pod("probe")).body),
            what="the webhook to be called",
        )
        cluster.withdraw(space, "judge", port)
        cluster.wait_until(
            lambda: "no endpoints available" in str(create_pod(cluster, space, pod("probe")).body),
            what="the webhook to be unreachable",
        )


def test_a_program_of_the_test_ends_when_asked_and_shows_its_log(cluster: Cluster) -> None:
    program = cluster.program("own", "sh", "-c", "echo it says $WORD; exec sleep 1000", environment={"WORD": "hello"})
    cluster.wait_until(lambda: "it says hello" in cluster.components.log_tails(), what="its log")
    assert program.terminate() == -signal.SIGTERM
    assert not program.running()


def test_a_program_that_does_not_end_when_asked_shows_where_it_hangs(cluster: Cluster) -> None:
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(1e3)"
    )
    program = cluster.program("deaf", sys.executable, "-c", script)
    cluster.wait_until(lambda: "deaf" in program.log_tail(), what="its log")
    with pytest.raises(NotReadyError, match=r"deaf did not end within 0\.1 s of SIGTERM(?s:.*)line 1 in <module>"):
        program.terminate(within_s=0.1)
    assert not program.running()


def test_two_clusters_live_side_by_side_and_leave_nothing_behind(cluster: Cluster) -> None:
    before = interfaces()
    with Cluster() as second:
        folder = second.folder
        second.create_namespace("only-here")
        assert not cluster.request("GET", "/api/v1/namespaces/only-here").ok
        assert interfaces() - before
        assert len(processes_with(str(folder))) >= len(COMPONENTS)
    assert interfaces() == before
    assert processes_with(str(folder)) == []
    assert not folder.exists()
    assert cluster.request("GET", "/readyz").ok


def test_nothing_outlives_a_test_run_that_was_killed() -> None:
    before = interfaces()
    program = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(CHECKOUT)!r})
        from devcluster.cluster import Cluster
        with Cluster() as cluster:
            print(cluster.folder, flush=True)
            sys.stdin.read()
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        folder = run.stdout.readline().strip()
        assert processes_with(folder)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    wait_until(lambda: not processes_with(folder), what="the programs to end with the test run", seconds=10)
    wait_until(lambda: interfaces() == before, what="the network to be removed with its programs", seconds=10)
    with scratch_folder():  # the next cluster's first step
        assert not Path(folder).exists()


def test_without_a_namespace_it_starts_on_loopback() -> None:
    with Cluster(in_namespace=False) as plain:
        assert plain.url.startswith("https://127.0.0.1:")
        assert plain.kubectl("get", "namespaces", "-o=name").stdout.startswith("namespace/")


def test_a_program_that_is_not_built_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        CannotStartError,
        match=r"kube-apiserver is not built yet .*python -m devcluster.build control-plane",
    ):
        binaries.program_path("kube-apiserver")


def test_a_missing_tool_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotStartError, match=r"apt-get install iproute2 util-linux"):
        network.check_machine()


def test_a_component_that_ends_by_itself_is_named_with_its_log(cluster: Cluster) -> None:
    cluster.components["kube-scheduler"].kill()
    try:
        with pytest.raises(CannotStartError, match="kube-scheduler ended by itself"):
            cluster.components.wait_ready("kube-scheduler")
    finally:
        cluster.components.restart("kube-scheduler")
