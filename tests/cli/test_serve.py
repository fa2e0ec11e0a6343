from __future__ import annotations

import http.client
import json
import signal
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from cli.demo_scenes.api_server import ApiServer
from cli.demo_scenes.tls_service import TlsService
from halfcard import names
from kube.manifests.documents import read_path

from .command import Service, halfcard, service
from .test_review import BAD, DEPLOYMENT, GOOD, NODE
from .waiting import wait_until


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


@pytest.fixture
def running(state: Path) -> Iterator[Service]:
    with service(state) as started:
        yield started


@pytest.fixture
def server(running: Service) -> Iterator[ApiServer]:
    with client(running) as connected:
        yield connected


def client(running: Service) -> ApiServer:
    return ApiServer(running.ready["admission"], running.ready["ca"])


def test_when_ready_it_prints_one_line_with_its_address(running: Service) -> None:
    ready = running.ready

    assert ready["ready"] is True
    assert ready["admission"].startswith("https://127.0.0.1:")
    assert ready["extender"].startswith("https://127.0.0.1:")
    assert ready["status"].startswith("http://127.0.0.1:")
    assert "BEGIN CERTIFICATE" in Path(ready["ca"]).read_text()
    with urllib.request.urlopen(f"{ready['status']}/readyz") as answer:
        assert json.load(answer)["ready"] is True


def test_it_reports_how_long_its_certificate_lasts(running: Service) -> None:
    with urllib.request.urlopen(f"{running.ready['status']}/metrics") as answer:
        assert b"halfcard_served_certificate_days_left 89.9" in answer.read()


def test_its_url_has_a_caller_token_that_is_kept_for_its_owner_alone(running: Service, state: Path) -> None:
    base, token = running.ready["admission"].rsplit("/", 1)
    file = state / ".caller-tokens"
    assert file.read_text().split() == [token] and len(token) == 64
    assert file.stat().st_mode & 0o777 == 0o600
    assert status_of(f"{base}/{token}/validate/pods", running) == 400
    assert status_of(f"{base}/validate/pods", running) == 403
    assert token not in (state.parent / "serve.log").read_text()


def status_of(url: str, running: Service) -> int:
    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, context=ssl.create_default_context(cafile=running.ready["ca"]))
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def test_it_decides_as_review_does(server: ApiServer) -> None:
    repaired = server.create(yaml.safe_load(GOOD), user="dana")
    refused = server.create(yaml.safe_load(BAD), user="dana")

    (offline,) = halfcard("review", "-f", "-", "-o", "json", stdin=GOOD).json()["items"]
    assert [change.as_json() for change in repaired.changes] == offline["patch"]
    assert '"1.5"' in refused.denied


def test_a_node_that_appears_in_the_folder_is_known(server: ApiServer, state: Path) -> None:
    deployment = yaml.safe_load(DEPLOYMENT)
    assert server.create(deployment, user="dana").denied == ""

    (state / "node.yaml").write_text(NODE)

    wait_until(lambda: "HC008" in server.create(deployment, user="dana").denied, what="the node is seen")


def test_a_manifest_that_breaks_later_is_reported_and_the_last_good_view_stays(state: Path) -> None:
    (state / "node.yaml").write_text(NODE)
    with service(state) as running:
        (state / "node.yaml").write_text("kind: [\n")
        log = state.parent / "serve.log"
        wait_until(lambda: f"{state / 'node.yaml'}:2" in log.read_text(), what="the mistake is in the log")

        with client(running) as server:
            assert "HC008" in server.create(yaml.safe_load(DEPLOYMENT), user="dana").denied


@pytest.mark.parametrize("text", ["kind: Node\n  x: [\n", "\nkind: Pod\nmetadata: {generateName: x-}\n"])
def test_an_invalid_manifest_at_the_start_ends_the_process(state: Path, text: str) -> None:
    (state / "some.yaml").write_text(text)

    done = halfcard("serve", "--state", str(state))

    assert done.code == 2
    assert f"{state / 'some.yaml'}:2:" in done.err


def test_a_missing_folder_is_named_and_not_created(tmp_path: Path) -> None:
    done = halfcard("serve", "--state", str(tmp_path / "nowhere"))

    assert done.code == 2
    assert str(tmp_path / "nowhere") in done.err
    assert not (tmp_path / "nowhere").exists()


def test_a_port_in_use_exits_3_and_names_it(running: Service, state: Path) -> None:
    taken = running.ready["status"].removeprefix("http://")

    done = halfcard(
        "serve", "--state", str(state), "--admission", "127.0.0.1:0", "--extender", "127.0.0.1:0", "--status", taken
    )

    assert done.code == 3
    assert taken in done.err


def test_what_was_bound_over_tls_is_bound_after_kill_9_and_no_card_is_used_twice(state: Path) -> None:
    (state / "node.yaml").write_text(NODE)
    pods = [f"p{number:02}" for number in range(12)]
    for name in pods:
        (state / f"{name}.yaml").write_text(GOOD.replace("good", name).replace("0.3", "40").replace("5Gi", "20"))
    with service(state) as running:
        bound = [name for name in pods[:3] if bind(running, name) == ""]
        late = threading.Thread(target=bind_all, args=(running, pods[3:6]))
        late.start()
        running.stop(by=signal.SIGKILL)
        late.join()
    assert bound == pods[:3]
    assert {*bound} <= bound_in(state) <= {*pods[:6]}

    with service(state) as again:
        for name in pods:
            bind(again, name)
    assert len(bound_in(state)) == 8  # 40 % of a card each: two on each of four cards
    assert not list(state.glob(".*.new"))


def bind_all(running: Service, pods: Iterable[str]) -> None:
    with suppress(OSError, http.client.HTTPException):
        for name in pods:
            bind(running, name)


def bind(running: Service, name: str) -> str:
    call = {"PodName": name, "PodNamespace": "default", "PodUID": f"default/{name}", "Node": "gpu1"}
    with TlsService(running.ready["extender"], running.ready["ca"]) as extender:
        return str(extender.post(names.BIND_PATH, call)["Error"])


def bound_in(state: Path) -> set[str]:
    pods = [each.obj for each in read_path(state) if each.kind == "Pod"]
    return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


def test_it_exits_with_0_after_sigterm(running: Service) -> None:
    assert running.stop() == 0
