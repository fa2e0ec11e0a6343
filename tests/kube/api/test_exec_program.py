"""What a program that logs in reads and prints: the protocol client.authentication.k8s.io."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube.api.exec_program import ExecProgram, cluster_info, exec_info, read_credential, read_program

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"
LOGIN = {"apiVersion": V1, "command": "login", "interactiveMode": "IfAvailable"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def program(**fields: Any) -> ExecProgram:
    return read_program(LOGIN | fields)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "the version that kubectl 1.24 removed": ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "apiVersion"),
    "no command": ({"command": ""}, "command is empty"),
    "a command that is no text": ({"command": ["login"]}, "command"),
    "an unknown field, which kubectl may understand": ({"sandbox": True}, "sandbox"),
    "an unknown mode": ({"interactiveMode": "Sometimes"}, "Sometimes"),
    "v1 without a mode": ({"interactiveMode": None}, "requires interactiveMode"),
    "an argument that is no text": ({"args": ["--port", 1]}, r"\$\.args\[1\]"),
    "a variable without a name": ({"env": [{"value": "x"}]}, "name"),
}


@pytest.mark.parametrize(("fields", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_a_program_that_cannot_be_used_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        program(**fields)


def test_fields_without_a_value_are_not_there() -> None:
    read = read_program({"apiVersion": BETA, "command": "login", "args": None, "env": None, "installHint": None})
    assert (read.args, read.variables(), read.interactive_mode) == ((), {}, "")


def test_a_program_is_given_its_cluster_only_if_the_kubeconfig_says_so() -> None:
    settings = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster = {
        "server": "https://10.0.0.1",
        "tls-server-name": "api",
        "certificate-authority": "ca.crt",
        "extensions": [{"name": "minikube", "extension": {}}, settings],
    }
    asked = json.loads(exec_info(program(provideClusterInfo=True), cluster_info(cluster, "Q0E="), interactive=True))
    expected = {
        "server": "https://10.0.0.1",
        "tls-server-name": "api",
        "certificate-authority-data": "Q0E=",
        "config": {"audience": "a"},
    }
    spec = {"interactive": True, "cluster": expected}
    assert asked == {"apiVersion": V1, "kind": "ExecCredential", "spec": spec}
    assert json.loads(exec_info(program(), "", interactive=False))["spec"] == {"interactive": False}


def printed(status: dict[str, Any] | None, version: str = V1) -> bytes:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}).encode()


UNUSABLE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "truncated"),
    "a bare token": (b"secret", "malformed"),
    "another kind": (b'{"apiVersion": "v1", "kind": "Secret", "status": {"token": "secret"}}', "kind"),
    "another version": (printed({"token": "secret"}, BETA), "v1beta1, and the kubeconfig requires"),
    "no status": (printed(None), "status"),
    "no credential": (printed({}), "neither a token nor"),
    "a certificate without its key": (printed({"clientCertificateData": "secret"}), "not both"),
    "a key without its certificate": (printed({"token": "secret", "clientKeyData": "secret"}), "not both"),
    "a token of two lines": (printed({"token": "secret\r\nImpersonate-User: admin"}), "cannot be in a header"),
    "an end that is no time": (printed({"token": "secret", "expirationTimestamp": "soon"}), "expirationTimestamp"),
    "an end without a zone": (
        printed({"token": "secret", "expirationTimestamp": "2026-01-01T00:00:00"}),
        "expirationTimestamp",
    ),
}


@pytest.mark.parametrize(("output", "why"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_output_that_is_no_credential_is_refused_without_quoting_it(output: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        read_credential(program(), output, NOW)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("ends", "renewed"),
    [
        pytest.param("2026-01-01T01:00:00Z", timedelta(minutes=59, seconds=30), id="an hour: half a minute before"),
        pytest.param("2026-01-01T01:00:10+01:00", timedelta(seconds=9), id="seconds: in the last tenth"),
        pytest.param("2025-12-31T00:00:00.5Z", timedelta(days=-1, seconds=0.5), id="already over: at every use"),
    ],
)
def test_a_credential_is_renewed_shortly_before_its_end(ends: str, renewed: timedelta) -> None:
    found = read_credential(program(), printed({"token": "t", "expirationTimestamp": ends}), NOW)
    assert found.renew_at == NOW + renewed


def test_a_credential_without_an_end_is_kept() -> None:
    found = read_credential(
        program(), printed({"token": None, "clientCertificateData": "c", "clientKeyData": "k"}), NOW
    )
    assert (found.token, found.certificate, found.key) == ("", "c", "k")
    assert found.renew_at > NOW + timedelta(days=365_000)
