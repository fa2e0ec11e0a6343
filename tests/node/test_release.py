"""What a release says of itself, beside the real image and the real helm; it needs Debian, and no cluster."""

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

_OF_THE_IMAGE: Final = {
    "python_version": PYTHON,
    "python_full_version": f"{PYTHON}.2",
    "sys_platform": "linux",
    "platform_python_implementation": "CPython",
}
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+==.+?) \\$", re.MULTILINE)


@pytest.fixture(scope="module")
def parts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(sbom(read(image(default_cache()))))["components"]
    return found


def of_kind(parts: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in parts if each["purl"].startswith(f"pkg:{kind}/")]


def test_the_bill_names_exactly_the_debian_packages_that_were_decided_about(parts: list[dict[str, Any]]) -> None:
    assert sorted(each["name"] for each in of_kind(parts, "deb")) == sorted(TAKEN)


def test_the_bill_names_every_pinned_wheel_at_its_version_and_no_other(parts: list[dict[str, Any]]) -> None:
    pinned = [Requirement(line) for line in _PINNED.findall(wheels_of(LOCK.read_text()))]
    wanted = {
        f"pkg:pypi/{each.name}@{str(each.specifier).removeprefix('==')}"
        for each in pinned
        if each.marker is None or each.marker.evaluate(_OF_THE_IMAGE)
    }
    assert len(wanted) > 20
    assert {each["purl"] for each in of_kind(parts, "pypi")} == wanted


def test_the_bill_names_ourselves(parts: list[dict[str, Any]]) -> None:
    assert [each["version"] for each in of_kind(parts, "generic")] == [__version__]


def test_helm_renders_the_packed_chart_to_the_very_manifests(tmp_path: Path) -> None:
    packed = tmp_path / "halfcard.tgz"
    packed.write_bytes(chart())
    assert manifests(str(program_path("helm")), packed) == MANIFESTS.read_text()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, without what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    packed = folder / f"halfcard-{__version__}-py3-none-any.whl"
    packed.write_bytes(wheel())
    options = ("--no-deps", "--no-index", "--quiet", f"--target={folder / 'target'}")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(packed)], check=True)
    return folder / "target"


@pytest.mark.parametrize(("program", "said"), [("halfcard", "halfcard"), ("kubectl-halfcard", "kubectl halfcard")])
def test_the_wheel_is_installed_and_its_programs_run(installed: Path, program: str, said: str) -> None:
    """From it alone: `-S` hides the checkout, which the environment refers to by a .pth file."""
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
    assert done.stdout.startswith(f"usage: {said} [-h]")
