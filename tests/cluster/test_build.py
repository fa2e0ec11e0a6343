"""The decisions of the builder; nothing is compiled here."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.build import binaries, builder, toolchain
from devcluster.errors import CannotStartError


def test_the_key_of_a_build_is_the_hash_of_its_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(binaries.MODULES, tmp_path / "tools")
    before = binaries.build_folder("kubernetes")
    monkeypatch.setattr(binaries, "MODULES", tmp_path / "tools")
    assert binaries.build_folder("kubernetes") == before
    with (tmp_path / "tools" / "kubernetes" / "go.sum").open("a") as sums:
        sums.write("one more line\n")
    assert binaries.build_folder("kubernetes") != before


def test_every_pinned_group_has_its_module_and_its_packages() -> None:
    for group in binaries.GROUPS.values():
        module = (binaries.MODULES / group.module / "go.mod").read_text()
        assert [package for package in group.packages.values() if package not in module] == []


def test_the_environment_chooses_the_minor(monkeypatch: pytest.MonkeyPatch) -> None:
    built = {}
    for minor in ("", "1.36", "1.34"):
        monkeypatch.setenv(binaries.MINOR_VARIABLE, minor)
        built[minor] = binaries.build_folder(binaries.GROUPS["node"].module)
        assert binaries.kubernetes_version(binaries.kubernetes_module()).startswith(f"v{minor}")
    assert built[""] == built["1.36"] != built["1.34"]
    assert binaries.GROUPS["kwok"].module == "kwok"


def test_an_unknown_minor_is_refused_with_the_minors_that_can_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(binaries.MINOR_VARIABLE, "1.19")
    with pytest.raises(CannotStartError, match=r"HALFCARD_KUBERNETES=1.19 .* use 1.34 or 1.36"):
        binaries.kubernetes_module()


def test_a_program_is_built_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert list(builder.missing_programs(binaries.GROUPS["kwok"])) == ["kwok"]
    folder = binaries.build_folder("kwok")
    folder.mkdir(parents=True)
    (folder / "kwok").touch()
    assert builder.missing_programs(binaries.GROUPS["kwok"]) == {}


def test_a_second_builder_says_that_it_waits(tmp_path: Path) -> None:
    cache = tmp_path / "halfcard" / "cluster-tools"
    cache.mkdir(parents=True)
    command = [sys.executable, "-m", "devcluster.build", "kwok"]
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen(
            command, cwd=Path(__file__).parents[2], env=environment, stdout=subprocess.PIPE, text=True
        ) as second:
            assert second.stdout is not None
            assert "another build is running" in second.stdout.readline()
            second.kill()


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("go.etcd.io/etcd/server/v3", "server"),
        ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
        ("a/cmd/vet", "vet"),
    ],
)
def test_go_names_a_program_after_its_package(package: str, name: str) -> None:
    assert builder._built_name(package) == name


def test_progress_says_what_is_done_and_what_is_left() -> None:
    printed = builder.progress_line(compiled=500, total=2000, elapsed_s=60)
    assert printed == "  500 of 2000 packages, 1 min 00 s gone, about 3 min 00 s of compiling left, then linking"


@pytest.mark.parametrize(("printed", "version"), [("go1.26.8", (1, 26, 8)), ("go1.9", (1, 9)), ("nonsense", ())])
def test_the_version_of_go_is_read_as_numbers(tmp_path: Path, printed: str, version: tuple[int, ...]) -> None:
    program = tmp_path / "go"
    program.write_text(f"#!/bin/sh\necho go version {printed} linux/amd64\n")
    program.chmod(0o755)
    assert toolchain.go_version(str(program)) == version


def test_a_missing_go_has_no_version(tmp_path: Path) -> None:
    assert toolchain.go_version(str(tmp_path / "go")) == ()
