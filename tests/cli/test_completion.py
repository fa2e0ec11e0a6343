"""What a shell completes: commands, options and their values."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cli import completion
from cli.__main__ import complete, main, parser

from .command import ROOT, halfcard

_BASH = """
source complete
COMP_WORDS=(halfcard "$@")
COMP_CWORD=$#
_halfcard
printf '%s\\n' "${COMPREPLY[@]}"
"""
_ZSH = """
compdef() { }
_describe() { print -rl -- "${(@)${(P)2}%%:*}" }
_files() { print -rl -- *(N) }
source complete
words=(halfcard "$@")
CURRENT=$#words
_halfcard
"""
_FISH = """
source complete
complete -C "halfcard $argv" | cut -f1
"""
_ASKED = {"bash": ["bash", "-euc", _BASH, "bash"], "zsh": ["zsh", "-fc", _ZSH, "zsh"], "fish": ["fish", "-c", _FISH]}
"""How each shell completes the words that follow; only bash is on every machine."""

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


@pytest.mark.parametrize("shell", [shell for shell in _ASKED if shutil.which(shell)])
@pytest.mark.parametrize(("words", "offered"), [("certs st", ["status"]), ("inspect -o ", ["json", "text", "yaml"])])
def test_a_shell_completes_with_the_printed_script(tmp_path: Path, shell: str, words: str, offered: list[str]) -> None:
    (tmp_path / "complete").write_text(halfcard("completion", shell).out)
    environment = {"PATH": f"{ROOT}/.venv/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    ask = [*_ASKED[shell], *words.split(" ")]
    done = subprocess.run(ask, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert sorted(done.stdout.split()) == offered


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
