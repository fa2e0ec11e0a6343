from __future__ import annotations

import json
from pathlib import Path

import pytest

from admission.__main__ import main
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_USAGE

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    return path


def why(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["level"] == "error"
    return str(json.loads(line)["why"])


def test_settings_that_cannot_be_used_are_named(
    tmp_path: Path, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("templates: maybe\n")
    wanted = [
        "--client-ca",
        "ca.crt",
        "--tls-dir",
        str(tmp_path),
        "--kubeconfig",
        str(kubeconfig),
        "--settings",
        str(settings),
    ]
    assert main(wanted) == EXIT_USAGE
    assert f"{settings}: templates" in why(capsys)


def test_a_missing_kubeconfig_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["--client-ca", "ca.crt", "--tls-dir", str(tmp_path), "--kubeconfig", str(tmp_path / "none")])
        == EXIT_USAGE
    )
    assert "none" in why(capsys)


def test_without_a_certificate_it_does_not_start(
    tmp_path: Path, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["--client-ca", "ca.crt", "--tls-dir", str(tmp_path), "--kubeconfig", str(kubeconfig)])
        == EXIT_CANNOT_START
    )
    assert "tls" in why(capsys)


def test_without_a_proof_of_its_callers_it_does_not_start(
    tmp_path: Path, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--tls-dir", str(tmp_path), "--kubeconfig", str(kubeconfig)])
    assert ended.value.code == EXIT_USAGE
    assert "add --caller-tokens FILE, or --client-ca FILE" in capsys.readouterr().err


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == EXIT_USAGE
