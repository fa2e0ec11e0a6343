from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from extender.__main__ import main
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_USAGE
from tests.serving.authority import Authority, write_pair

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""
ANY_PORT = ("--extender", "127.0.0.1:0", "--status", "127.0.0.1:0")


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    return path


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    (line,) = capsys.readouterr().err.splitlines()
    entry: dict[str, str] = json.loads(line)
    assert entry["level"] == "error"
    return entry


def why(capsys: pytest.CaptureFixture[str]) -> str:
    return said(capsys)["why"]


def usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a mistake in the arguments is answered with."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == EXIT_USAGE
    return capsys.readouterr().err.splitlines()[-1]


# --- the cluster and the settings


def test_without_a_kubeconfig_it_must_run_in_a_pod(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main([*ANY_PORT]) == EXIT_USAGE
    assert "the process does not run in a pod; name a kubeconfig" in why(capsys)


def test_the_error_names_a_missing_kubeconfig(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kubeconfig", str(tmp_path / "none")]) == EXIT_USAGE
    assert why(capsys).startswith(f"{tmp_path / 'none'}: cannot be read")


def test_the_error_names_a_file_that_is_no_kubeconfig(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").write_text("buy milk")
    assert main(["--kubeconfig", str(tmp_path / "notes")]) == EXIT_USAGE
    assert why(capsys) == f"{tmp_path / 'notes'}: is no kubeconfig; name another file"


def test_the_error_for_an_unknown_policy_lists_all_policies(
    tmp_path: Path, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("packing: tightest\n")
    assert main(["--kubeconfig", str(kubeconfig), "--settings", str(settings)]) == EXIT_USAGE
    assert why(capsys) == f"{settings}: packing: unknown policy tightest; use default, binpack, spread, fgd"


# --- certificates


def test_it_does_not_start_without_the_certificate_of_its_arguments(
    tmp_path: Path, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--kubeconfig", str(kubeconfig), "--tls-dir", str(tmp_path), *ANY_PORT]) == EXIT_CANNOT_START
    assert f"No such file or directory: '{tmp_path / 'tls.crt'}'" in why(capsys)


def test_the_error_names_a_missing_client_ca(
    tmp_path: Path, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pair(tmp_path, Authority().issue())
    wanted = ["--tls-dir", str(tmp_path), "--client-ca", str(tmp_path / "none"), *ANY_PORT]
    assert main(["--kubeconfig", str(kubeconfig), *wanted]) == EXIT_CANNOT_START
    assert f"No such file or directory: '{tmp_path / 'none'}'" in why(capsys)


def test_a_client_ca_without_tls_is_refused(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = usage(["--kubeconfig", str(kubeconfig), "--client-ca", "ca.crt"], capsys)
    assert message.endswith("argument --client-ca: callers show certificates within TLS; add --tls-dir DIR")


# --- addresses


@pytest.mark.parametrize("listener", ["extender", "status"])
def test_the_error_names_a_port_that_is_in_use(
    listener: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        wanted = ["--kubeconfig", str(kubeconfig), *ANY_PORT, f"--{listener}", address, "--grace", "0"]
        assert main(wanted) == EXIT_CANNOT_START
    event = said(capsys)["event"]
    assert event.startswith(f"listener {listener}: cannot listen on {address}: ")
    assert event.endswith("use an address of this machine and a port that no other process uses")


@pytest.mark.parametrize("text", ["nonsense", "127.0.0.1", "127.0.0.1:65536"])
def test_the_error_for_a_bad_address_shows_valid_forms(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f'argument --extender: listen address: got "{text}"; use HOST:PORT' in usage(["--extender", text], capsys)


@pytest.mark.parametrize(
    "text", ["10.0.0.7:3456", "https://10.0.0.7", "https://10.0.0.7:0x1", "https://10.0.0.7:3456/scheduler", ""]
)
def test_the_advertised_address_must_be_a_complete_url(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    message = usage(["--advertise", text], capsys)
    assert f'argument --advertise: got "{text}"; a URL with a port and no path' in message
