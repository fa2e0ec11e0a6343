"""What a release is made of: the same bytes each time, of one version, with hashes that anybody can check."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest
import yaml

from deploy.image.root import REPOSITORY, own_packages
from deploy.release.artefacts import SUMS, chart, differing, sums
from deploy.release.wheel import wheel
from halfcard import __version__
from tests.docs.pages import ROOT

_OTHER_MASK: Final = 0o077


@pytest.fixture(scope="module")
def built() -> bytes:
    return wheel()


def test_the_wheel_is_the_same_for_every_user_and_time(built: bytes) -> None:
    mask = os.umask(_OTHER_MASK)
    try:
        assert wheel() == built
    finally:
        os.umask(mask)


def test_the_wheel_has_every_module_and_the_version_of_the_code(built: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(built)) as opened:
        inside = {name for name in opened.namelist() if name.endswith(".py")}
        metadata = opened.read(f"halfcard-{__version__}.dist-info/METADATA").decode()
    here = {str(path.relative_to(REPOSITORY)) for name in own_packages() for path in (ROOT / name).rglob("*.py")}
    assert inside == here
    assert f"\nVersion: {__version__}\n" in metadata


def test_the_chart_archive_has_the_layout_of_helm() -> None:
    with tarfile.open(fileobj=io.BytesIO(chart()), mode="r:gz") as opened:
        found = {each.name for each in opened if each.isfile()}
        title = yaml.safe_load(opened.extractfile("halfcard/Chart.yaml"))  # type: ignore[arg-type]  # it is a file
    assert title["version"] == __version__
    assert {"halfcard/values.yaml", "halfcard/values.schema.json", "halfcard/templates/admission.yaml"} <= found
    assert [name for name in found if name.endswith(".py") or not name.startswith("halfcard/")] == []


def test_the_hashes_are_those_of_the_files() -> None:
    assert sums({"b": b"two", "a": b"one"}).decode().splitlines() == [
        f"{hashlib.sha256(b'one').hexdigest()}  a",
        f"{hashlib.sha256(b'two').hexdigest()}  b",
    ]


def test_a_missing_or_different_file_is_reported_by_name(tmp_path: Path) -> None:
    (tmp_path / "same").write_bytes(b"same")
    (tmp_path / "other").write_bytes(b"before")
    assert differing({"same": b"same", "other": b"now", SUMS: b""}, tmp_path) == ["other", SUMS]


def test_the_version_is_defined_once() -> None:
    """Everything else that has it is made from there, and a test of its own says so."""
    beside = "deploy/scheduler/beside/extender.yaml"
    made = {"deploy/chart/halfcard/Chart.yaml", "deploy/halfcard.yaml", beside, "docs/README.md"}
    defined = {"CHANGELOG.md", "halfcard/__init__.py"}
    below = (path for top in ("cli", "deploy", "docs", "halfcard") for path in (ROOT / top).rglob("*"))
    said = {str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.*"), *below) if _says_version(path)}
    assert said == made | defined


def _says_version(path: Path) -> bool:
    return path.is_file() and path.suffix in {".md", ".py", ".toml", ".yaml", ""} and _version_in(path.read_text())


def _version_in(text: str) -> bool:
    return f" {__version__}" in text or f":{__version__}" in text or f'"{__version__}"' in text
