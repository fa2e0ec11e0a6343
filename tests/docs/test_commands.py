"""Runs every command on the pages, and compares the output below it with what the command prints."""

from __future__ import annotations

import json
import re
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED
from halfcard.quota.budgets import Budget, read_budget
from settings.installation import read_settings

from .pages import ROOT, Fence, all_fences, inline_code
from .shell import Shell, shows
from .switching import TAG as SWITCHING

NOT_RUN: Final = {
    "make environment": "every target runs it first",
    "make demo": "makes an environment first; then it runs `halfcard demo`, which is run as the fence below it",
    "make test": "it runs this test",
    ".venv/bin/halfcard dev up": "needs root and builds Kubernetes; tests/cluster/test_dev.py runs it",
    ".venv/bin/halfcard dev down": "as above",
    "kubectl proxy --port=8001 &": "tests/cluster/test_kubeconfigs.py runs it on a free port",
    "halfcard doctor --server http://127.0.0.1:8001": "as above",
}
"""The commands of fences with the tag `not-run`, and why they are not run."""

SERVICE: Final = "service"
PLACING: Final = "placing"
"""The tag of fences that are run in their order; those with an output call a service."""
INSTALL: Final = "install"
MANAGED: Final = "managed"
"""The tags of fences that tests/node/readme_installation.py runs, in their order, on an empty cluster with a node: one
tag where the scheduler can be configured, one where it cannot."""

DEV: Final = "dev"
"""The tag of fences that tests/cluster/test_quick_start.py runs on a cluster of `halfcard dev up`."""

ON_A_CLUSTER: Final = {
    "certificates.md": "tests/cluster/test_certs.py",
    "runbooks.md": "tests/cluster/test_runbooks.py",
}
"""The test that runs all `bash` fences of a page on a real API server."""
_FREE_PORTS: Final = "--admission 127.0.0.1:0 --extender 127.0.0.1:0 --status 127.0.0.1:0 --grace 0"

each_script = pytest.mark.parametrize("fence", [f for f in all_fences("sh") if not f.tags], ids=str)
each_answer = pytest.mark.parametrize("fence", [f for f in all_fences("console") if not f.tags], ids=str)
each_service = pytest.mark.parametrize("fence", [f for f in all_fences("console") if SERVICE in f.tags], ids=str)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.prepare()
    return shell


def test_only_listed_commands_are_not_run_and_only_known_tags_are_used() -> None:
    not_run = [f for f in all_fences("sh", "console") if "not-run" in f.tags]
    commands = {line.partition("#")[0].strip() for fence in not_run for line in fence.text.splitlines()}
    assert commands == set(NOT_RUN)
    tags = {tag for fence in all_fences("sh", "console") for tag in fence.tags}
    assert tags <= {"not-run", SERVICE, PLACING, INSTALL, MANAGED, DEV, SWITCHING}


def test_the_commands_for_a_cluster_have_a_test_that_runs_them() -> None:
    assert {fence.page.name for fence in all_fences("bash")} == set(ON_A_CLUSTER)
    for page, test in ON_A_CLUSTER.items():
        assert f'"{page}"' in (ROOT / test).read_text() and 'all_fences("bash")' in (ROOT / test).read_text()


@pytest.mark.parametrize("page", ON_A_CLUSTER)
def test_a_command_to_run_is_in_a_fence_and_not_in_a_sentence(page: str) -> None:
    """A sentence may name a command, such as `kubectl describe node`; a command to run has more words."""
    assert [code for code in inline_code(ROOT / "docs" / page) if re.match(r"(kubectl|helm)( \S+){3}", code)] == []


@each_script
def test_a_script_on_a_page_works(fence: Fence, shell: Shell) -> None:
    done = shell.run(fence.text)
    assert done.returncode == 0, done.stderr


@each_answer
def test_a_command_prints_the_output_below_it(fence: Fence, shell: Shell) -> None:
    command, expected = typed(fence)
    done = shell.run(command)
    assert done.returncode in (EXIT_OK, EXIT_REFUSED), done.stderr
    assert shows(expected, done.stdout), done.stdout


@each_service
def test_a_service_prints_its_ready_line_answers_and_stops_on_sigterm(fence: Fence, shell: Shell) -> None:
    command, expected = typed(fence)
    shown = json.loads(expected)
    with shell.start(f"{command} {_FREE_PORTS}") as service:
        ready: dict[str, Any] = json.loads(service.stdout.readline() if service.stdout else "{}")
        with urllib.request.urlopen(f"{ready['status']}/readyz", timeout=10) as answer:
            assert answer.status == 200
        service.terminate()
        assert service.wait(timeout=20) == 0
    assert list(ready) == list(shown)
    assert ready["ca"].endswith(shown["ca"].lstrip("…"))
    assert [url.rpartition(":")[0] for url in _urls(ready)] == [url.rpartition(":")[0] for url in _urls(shown)]


def test_a_placement_on_a_page_works_without_a_cluster(shell: Shell) -> None:
    steps = [fence for fence in all_fences("sh", "console") if PLACING in fence.tags]
    assert shell.run(steps[0].text).returncode == 0
    add_curl(shell)
    with shell.start(f"halfcard serve --state state --tls-dir tls {_FREE_PORTS}") as service:
        try:
            extender = json.loads(service.stdout.readline() if service.stdout else "{}")["extender"]
            for fence in steps[1:]:
                command, expected = typed(fence)
                done = shell.run(command.replace("https://127.0.0.1:3456", extender))
                assert shows(expected.rstrip(), done.stdout.rstrip()), (done.stdout, done.stderr)
        finally:
            service.kill()
    assert len(steps) == 4


def add_curl(shell: Shell) -> None:
    """Adds the part of curl that the pages use, where this machine has none."""
    if shutil.which("curl") is None:
        shell.program("curl", f'exec "{sys.executable}" "{ROOT}/tests/docs/curl.py" "$@"')


def test_the_settings_and_quotas_on_a_page_are_valid() -> None:
    for fence in all_fences("yaml"):
        found = yaml.safe_load(fence.text)
        if "kind" not in found:
            read_settings(found)
        else:  # tests/cluster/test_gpu_quota.py applies them
            assert isinstance(read_budget({**found, "metadata": {**found["metadata"], "uid": "u"}}), Budget)


def test_the_readme_shows_its_two_commands_on_the_first_screen() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:30])
    assert "make demo" in first_screen and "make test" in first_screen


def test_an_excerpt_matches_its_output_and_no_other() -> None:
    assert shows("…\nb\n…\n", "a\nb\nc\n")
    assert shows("until …\n", "until noon\n")
    assert not shows("…\nb\n", "a\nb\nc\n")
    assert not shows("a … c\n", "a b\n c\n")


def typed(fence: Fence) -> tuple[str, str]:
    """Returns the command on the first line, and the output below it."""
    prompt, _, expected = fence.text.partition("\n")
    assert prompt.startswith("$ "), f"{fence}: begin with $"
    return prompt.removeprefix("$ "), expected


def _urls(ready: dict[str, Any]) -> list[str]:
    return [str(value) for value in ready.values() if str(value).startswith("http")]
