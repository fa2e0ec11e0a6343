"""What a shell completes: commands, options and their values."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli import completion
from cli.__main__ import complete, main, parser

from .command import ROOT, halfcard

_ASK = """
source complete.bash
COMP_WORDS=(halfcard "$@")
COMP_CWORD=$#
_halfcard
echo "${COMPREPLY[0]}"
"""

COMPLETIONS = {
    "commands": ("do", ["doctor"]),
    "no word yet": ("certs ", ["rotate", "status"]),
    "subcommands": ("quota re", ["repair", "report", "revert"]),
    "options": ("doctor --s", ["--server", "--settings", "--strict"]),
    "options of a subcommand": ("quota explain --p", ["--pod"]),
    "values of an option": ("inspect -o ", ["json", "text", "yaml"]),
    "values of an argument": ("top n", ["nodes"]),
    "the word after a value": ("inspect --kubeconfig certs --form", ["--format"]),
    "a file": ("inspect --kubeconfig ", []),
    "nothing after an unknown command": ("paint --x", []),
}


@pytest.mark.parametrize(("typed", "offered"), COMPLETIONS.values(), ids=COMPLETIONS.keys())
def test_a_shell_completes_commands_options_and_values(typed: str, offered: list[str]) -> None:
    found = completion.candidates(parser(), typed.split(" "))
    assert sorted(each.partition("\t")[0] for each in found) == offered


def test_a_candidate_comes_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([completion.HIDDEN, "docto"]) == 0
    assert capsys.readouterr().out == "doctor\tfind out what is wrong with an installation, and how to fix it\n"


@pytest.mark.parametrize(("words", "offered"), [("certs st", "status"), ("inspect -o y", "yaml"), ("", "review")])
def test_bash_completes_with_the_printed_script(tmp_path: Path, words: str, offered: str) -> None:
    (tmp_path / "complete.bash").write_text(halfcard("completion", "bash").out)
    path = f"{ROOT}/.venv/bin:/usr/bin:/bin"
    ask = ["bash", "-euc", _ASK, "bash", *words.split(" ")]
    done = subprocess.run(ask, capture_output=True, text=True, check=True, cwd=tmp_path, env={"PATH": path})
    assert done.stdout == f"{offered}\n"


@pytest.mark.parametrize(
    ("words", "printed"),
    [(["inspect", "-o", "y"], "yaml\n:4\n"), (["inspect", "--kubeconfig", ""], ":0\n")],
)
def test_kubectl_gets_the_candidates_and_whether_files_may_follow(
    words: list[str], printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-halfcard", *words])
    assert complete() == 0
    assert capsys.readouterr().out == printed
