"""The artefacts of a release, compared with the real image and rendered by the real helm; needs Debian, no cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement

from deploy.chart.made import MANIFESTS
from deploy.chart.rendered import manifests
from deploy.image.build import default_cache, image
from deploy.image.contents import PYTHON, TAKEN
from deploy.image.packed import read
from deploy.image.root import LOCK, wheels_of
from deploy.image.sbom import sbom
from deploy.release.artefacts import chart
from deploy.release.wheel import wheel
from devcluster.build.binaries import program_path
from halfcard import __version__

_IMAGE_ENVIRONMENT: Final = {
    "python_version": PYTHON,
    "python_full_version": f"{PYTHON}.2",
    "sys_platform": "linux",
    "platform_python_implementation": "CPython",
}
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+==.+?) \\$", re.MULTILINE)


@pytest.fixture(scope="module")
def components() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(sbom(read(image(default_cache()))))["components"]
    return found


def of_type(components: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in components if each["purl"].startswith(f"pkg:{kind}/")]


def test_the_sbom_lists_exactly_the_chosen_debian_packages(components: list[dict[str, Any]]) -> None:
    assert sorted(each["name"] for each in of_type(components, "deb")) == sorted(TAKEN)


def test_the_sbom_lists_exactly_the_pinned_wheels_with_their_versions(components: list[dict[str, Any]]) -> None:
    pinned = [Requirement(line) for line in _PINNED.findall(wheels_of(LOCK.read_text()))]
    wanted = {
        f"pkg:pypi/{each.name}@{str(each.specifier).removeprefix('==')}"
        for each in pinned
        if each.marker is None or each.marker.evaluate(_IMAGE_ENVIRONMENT)
    }
    assert len(wanted) > 20
    assert {each["purl"] for each in of_type(components, "pypi")} == wanted


def test_the_sbom_lists_halfcard_with_its_version(components: list[dict[str, Any]]) -> None:
    assert [each["version"] for each in of_type(components, "generic")] == [__version__]


def test_helm_renders_the_packed_chart_to_the_committed_manifests(tmp_path: Path) -> None:
    packed = tmp_path / "halfcard.tgz"
    packed.write_bytes(chart())
    assert manifests(str(program_path("helm")), packed) == MANIFESTS.read_text()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed wheel, without its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    packed = folder / f"halfcard-{__version__}-py3-none-any.whl"
    packed.write_bytes(wheel())
    options = ("--no-deps", "--no-index", "--quiet", f"--target={folder / 'target'}")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(packed)], check=True)
    return folder / "target"


@pytest.mark.parametrize(
    ("program", "program_name"), [("halfcard", "halfcard"), ("kubectl-halfcard", "kubectl halfcard")]
)
def test_the_wheel_can_be_installed_and_its_programs_run(installed: Path, program: str, program_name: str) -> None:
    """`-S` hides the checkout, to which a .pth file of the environment refers."""
    path = os.pathsep.join([str(installed), sysconfig.get_path("purelib")])
    done = subprocess.run(
        [sys.executable, "-S", str(installed / "bin" / program), "--help"],
        cwd=installed.parent,
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {program_name} [-h]")
