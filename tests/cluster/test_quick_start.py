"""All commands of the quick start, run in their order on a cluster of `halfcard dev up`."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from halfcard.exit_codes import EXIT_OK
from tests.docs.pages import ROOT, fences
from tests.docs.shell import shows
from tests.docs.test_commands import DEV, typed

from .test_dev import halfcard_dev

_LONGEST_S = 90


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """The environment of a shell after the two exports that `up` prints."""
    folder = tmp_path / "dev"
    done = halfcard_dev("up", "--dir", str(folder))
    assert done.code == EXIT_OK, done
    (kubeconfig,) = re.findall(r"^export KUBECONFIG=(\S+)$", done.stdout, re.MULTILINE)
    (programs,) = re.findall(r'^export PATH=(\S+):"\$PATH"$', done.stdout, re.MULTILINE)
    yield os.environ | {"KUBECONFIG": kubeconfig, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    assert halfcard_dev("down", "--dir", str(folder)).code == EXIT_OK


def test_every_command_of_the_quick_start_prints_what_the_page_shows(environment: Mapping[str, str]) -> None:
    steps = [fence for fence in fences(ROOT / "docs" / "quick-start.md") if DEV in fence.tags]
    assert len(steps) > 10
    for step in steps:
        command, expected = typed(step)
        done = subprocess.run(
            ["sh", "-c", f"{command} 2>&1"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
        assert shows(expected, done.stdout), f"{step}\n{done.stdout}"
