"""Logging in with a program: when it runs, what it is given, and what is said when it fails."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from devcluster.control_plane.pki import ClusterAuthority
from kube.api.access import Access, AccessError
from kube.api.calls import ApiCalls, NotSentError
from kube.api.kubeconfig import from_kubeconfig
from kube.api.list_watch import ApiError, Collection

from ..exec_plugin import V1, Plugin
from ..listening import JsonHandler, listening
from .test_access import kubeconfig

PODS = "/api/v1/pods"


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def access(folder: Path, server: str = "http://127.0.0.1:8001", command: str = "./login", **fields: Any) -> Access:
    login = {"apiVersion": V1, "command": command, "interactiveMode": "Never"} | fields
    return from_kubeconfig(kubeconfig(folder, {"server": server}, {"exec": login}))


def token(access: Access) -> str:
    return dict(access.headers())["Authorization"]


def test_a_program_beside_the_kubeconfig_runs_once_for_all_connections(tmp_path: Path, plugin: Plugin) -> None:
    assert token(access(tmp_path, args=["--cluster", "c"])) == "Bearer token-1"
    assert token(access(tmp_path, args=["--cluster", "c"])) == "Bearer token-1"
    assert (tmp_path / "runs").read_text() == f"{plugin.path} --cluster c\n"


def test_threads_share_one_login(tmp_path: Path, plugin: Plugin) -> None:
    reached = access(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        assert {*threads.map(lambda _: token(reached), range(8))} == {"Bearer token-1"}
    assert plugin.runs() == 1


def test_a_program_has_its_variables_and_standard_input_is_empty(tmp_path: Path, plugin: Plugin) -> None:
    plugin.does('cat > input; printf %s "$PROFILE" > profile; printf %s "$KUBERNETES_EXEC_INFO" > info; cat status')
    token(access(tmp_path, env=[{"name": "PROFILE", "value": "p"}], provideClusterInfo=True))
    assert ((tmp_path / "profile").read_text(), (tmp_path / "input").read_text()) == ("p", "")
    spec = {"interactive": False, "cluster": {"server": "http://127.0.0.1:8001"}}
    assert json.loads((tmp_path / "info").read_text())["spec"] == spec


def test_a_token_that_has_ended_is_renewed(tmp_path: Path, plugin: Plugin) -> None:
    plugin.prints({"token": "token-RUN", "expirationTimestamp": "2020-01-01T00:00:00Z"})
    reached = access(tmp_path)
    assert [token(reached), token(reached)] == ["Bearer token-1", "Bearer token-2"]


@pytest.mark.usefixtures("plugin")
def test_a_refusal_of_an_older_login_keeps_the_newer_one(tmp_path: Path) -> None:
    reached, before = access(tmp_path), time.monotonic()
    token(reached)
    assert reached.logs_in_again(401, before)
    assert token(reached) == "Bearer token-1"
    assert reached.logs_in_again(401, time.monotonic())
    assert token(reached) == "Bearer token-2"
    assert not reached.logs_in_again(403, time.monotonic())


def test_a_program_may_return_a_certificate(tmp_path: Path, plugin: Plugin) -> None:
    pair = ClusterAuthority(tmp_path / "pki").client("me", name="me", groups=[])
    plugin.prints({"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()})
    reached = access(tmp_path, "https://127.0.0.1:6443")
    assert "Authorization" not in dict(reached.headers())
    assert reached.tls is not None
    assert isinstance(reached.tls(), ssl.SSLContext)
    assert plugin.runs() == 1
    plugin.prints({"clientCertificateData": "c", "clientKeyData": "k"})
    assert reached.logs_in_again(401, time.monotonic())
    with pytest.raises(AccessError, match="no pair"):
        reached.tls()


FAILURES: dict[str, tuple[str, dict[str, Any], str]] = {
    "it fails": ("echo no session >&2; echo log in first >&2; exit 3", {}, "code 3: no session | log in first; run it"),
    "it fails with a hint": ("exit 1", {"installHint": "Renew:\n  cloud login"}, "exit code 1; Renew: cloud login"),
    "it is not there": (
        "",
        {"command": "no-such-program", "installHint": "Install it"},
        "directory: 'no-such-program'; I",
    ),
    "it prints something else": ("echo secret", {}, "printed no usable credential: JSON is malformed"),
    "it wants to ask, and there is no terminal": ("", {"interactiveMode": "Always"}, "standard input is no terminal"),
}


@pytest.mark.parametrize(("script", "fields", "why"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_names_the_user_the_program_and_the_fix(
    tmp_path: Path, plugin: Plugin, script: str, fields: dict[str, Any], why: str
) -> None:
    plugin.does(script)
    with pytest.raises(AccessError) as failed:
        access(tmp_path, **fields).headers()
    command = fields.get("command", str(plugin.path))
    assert str(failed.value).startswith(f'{tmp_path / "config"}: user "me": the program "{command}" ')
    assert why in str(failed.value)
    assert "secret" not in str(failed.value)


@pytest.fixture
def strict_server() -> Iterator[tuple[str, list[str]]]:
    """A server that accepts the second token only, and the tokens that it has seen."""
    seen: list[str] = []

    class Handler(JsonHandler):
        def do_GET(self) -> None:  # noqa: N802  (http.server's name)
            seen.append(self.headers["Authorization"])
            good = self.headers["Authorization"] == "Bearer token-2"
            found = {"metadata": {"resourceVersion": "1"}, "items": []}
            self.answer(*((200, found) if good else (401, {"message": "Unauthorized"})))

        def do_POST(self) -> None:  # noqa: N802  (http.server's name)
            self.asked()
            self.do_GET()

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}", seen


TWICE = ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


def test_a_list_that_is_refused_is_repeated_with_a_new_login(
    tmp_path: Path, plugin: Plugin, strict_server: tuple[str, list[str]]
) -> None:
    server, seen = strict_server
    pods = Collection(access(tmp_path, server), PODS, dict[str, Any])
    with pytest.raises(ApiError, match="401"):  # the login is new: another one would not be accepted either
        next(pods.pages())
    assert [*pods.pages()] == [([], "1")]
    assert seen[1:] == TWICE and plugin.runs() == 2


@pytest.mark.parametrize("method", ["get", "post"])
async def test_a_call_that_is_refused_is_repeated_with_a_new_login(
    tmp_path: Path, plugin: Plugin, strict_server: tuple[str, list[str]], method: str
) -> None:
    server, seen = strict_server
    with closing(ApiCalls(access(tmp_path, server))) as calls:
        ask = calls.get if method == "get" else (lambda path: calls.post(path, b"{}"))
        assert (await ask(PODS)).status == 401
        assert (await ask(PODS)).status == 200
    assert seen[1:] == TWICE
    assert plugin.runs() == 2


async def test_a_call_whose_login_fails_was_not_sent(tmp_path: Path, plugin: Plugin) -> None:
    plugin.does("exit 1")
    with pytest.raises(NotSentError, match=r'was not sent: .*the program ".*login" ended with exit code 1'):
        await ApiCalls(access(tmp_path)).get(PODS)
