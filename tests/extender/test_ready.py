"""The running program, before it has seen anything: it lives, and is not ready."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .test_main import ANY_PORT, KUBECONFIG


@contextmanager
def running(kubeconfig: Path) -> Iterator[tuple[str, int]]:
    """An extender whose API server is not reachable; yields the address of its status port."""
    command = [sys.executable, "-m", "extender", "--kubeconfig", str(kubeconfig), *ANY_PORT, "--grace", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            events = map(json.loads, process.stderr)
            listens = next(each for each in events if each["event"] == "listening" and each["listener"] == "status")
            host, _, port = listens["address"].rpartition(":")
            yield host, int(port)
        finally:
            process.kill()


def asked(address: tuple[str, int], path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*address, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    said = answer.read().decode()
    connection.close()
    return answer.status, said


def test_a_process_that_has_read_nothing_yet_is_live_but_not_ready(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    with running(kubeconfig) as address:
        assert asked(address, "/healthz")[0] == 200
        status, why = asked(address, "/readyz")
    assert status == 503
    assert "nodes, pods and quotas have not all been read" in why
