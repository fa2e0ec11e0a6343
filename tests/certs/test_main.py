from __future__ import annotations

import json
from pathlib import Path

import pytest

from certs.__main__ import main


def test_one_line_reports_the_change_and_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["ensure", str(tmp_path), "--name", "halfcard.svc", "--name", "127.0.0.1"]

    assert [main(arguments), main(arguments)] == [0, 0]

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{tmp_path}: renewed: ca.crt is missing; tls.crt is missing; valid until ")
    assert second.startswith(f"{tmp_path}: kept: valid until ")


def test_a_bad_name_is_a_bad_argument(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ensure", str(tmp_path), "--name", "no name"]) == 2

    assert "server name 'no name': neither" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [[], ["ensure"], ["ensure", "folder"], ["renew", "folder"]])
def test_what_is_not_a_command_is_a_bad_argument(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)

    assert stopped.value.code == 2
    assert "usage: python -m certs" in capsys.readouterr().err


def test_a_folder_that_cannot_be_used_has_its_own_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o777)

    assert main(["ensure", str(tmp_path), "--name", "halfcard.svc"]) == 3

    assert "chmod 700" in capsys.readouterr().err


def test_a_controller_without_a_cluster_reports_what_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["keep", "--kubeconfig", str(tmp_path / "none")]) == 2

    line = json.loads(capsys.readouterr().err)
    assert line["event"] == "cannot start" and str(tmp_path / "none") in line["why"]


def test_the_certificate_controller_reports_a_mistake_in_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings.yaml").write_text("no_such_setting: 1")

    assert main(["keep", "--settings", str(tmp_path / "settings.yaml")]) == 2
    assert "no_such_setting" in capsys.readouterr().err
