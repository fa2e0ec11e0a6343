"""An image's bill of materials says what is in the image: no more, no less, and the same for equal images."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.image.archive import archive, digest
from deploy.image.layers import layer
from deploy.image.packed import read
from deploy.image.sbom import sbom

_LABELS: Final = {"org.opencontainers.image.version": "9.9", "org.opencontainers.image.licenses": "Apache-2.0"}
_STATUS: Final = """\
Package: zlib1g
Version: 1:1.2.13+dfsg-1
Architecture: amd64
Description: compression
 of all kinds
"""
_WHEEL: Final = """\
Metadata-Version: 2.1
Name: Some_Package
Version: 2.0
Classifier: License :: OSI Approved :: MIT License

Name: what a README says is none of it
"""
_EXPRESSED: Final = "Metadata-Version: 2.4\nName: other\nVersion: 1.0\nLicense-Expression: MIT OR BSD-3-Clause\n"


@pytest.fixture
def built(tmp_path: Path) -> bytes:
    base, own = tmp_path / "base", tmp_path / "own"
    wheels = "usr/lib/python3/dist-packages"
    for root, path, text in (
        (base, "var/lib/dpkg/status.d/zlib1g", _STATUS),
        (base, f"{wheels}/some_package-2.0.dist-info/METADATA", _WHEEL),
        (base, f"{wheels}/other-1.0.dist-info/METADATA", _EXPRESSED),
        (own, "usr/local/lib/halfcard.py", ""),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return archive([layer(base), layer(own)], name="r.example/halfcard:9.9", architecture="arm64", labels=_LABELS)


def bill(built: bytes) -> Any:
    return json.loads(sbom(read(built)))


def test_it_lists_halfcard_debian_packages_and_wheels(built: bytes) -> None:
    assert [each["purl"] for each in bill(built)["components"]] == [
        "pkg:generic/halfcard@9.9",
        "pkg:deb/debian/zlib1g@1:1.2.13%2Bdfsg-1?arch=amd64&distro=debian-12",
        "pkg:pypi/other@1.0",
        "pkg:pypi/some-package@2.0",
    ]


def test_it_describes_this_image(built: bytes) -> None:
    whole = bill(built)["metadata"]["component"]
    assert whole["purl"] == f"pkg:oci/halfcard@{digest(built)}?arch=arm64&tag=9.9"
    assert (whole["type"], whole["name"], whole["version"]) == ("container", "r.example/halfcard", "9.9")


def test_licences_are_those_that_the_packages_declare(built: bytes) -> None:
    licences = {each["name"]: each.get("licenses") for each in bill(built)["components"]}
    assert licences == {
        "halfcard": [{"expression": "Apache-2.0"}],
        "zlib1g": None,
        "other": [{"expression": "MIT OR BSD-3-Clause"}],
        "Some_Package": [{"license": {"name": "MIT License"}}],
    }


def test_equal_images_have_equal_bills_and_different_ones_another_number(built: bytes) -> None:
    other = archive([], name="r.example/halfcard:9.9", architecture="arm64", labels=_LABELS)
    assert sbom(read(built)) == sbom(read(built))
    assert bill(built)["serialNumber"] != bill(other)["serialNumber"]


def test_it_is_valid_cyclonedx(built: bytes) -> None:
    """Those that the schema of CycloneDX 1.6 has for what we write."""
    found = bill(built)
    assert (found["bomFormat"], found["specVersion"], found["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found["serialNumber"])
    parts = [found["metadata"]["component"], *found["components"]]
    assert all({"type", "name", "version", "bom-ref", "purl"} <= each.keys() for each in parts)
    references = [each["bom-ref"] for each in parts]
    assert len(set(references)) == len(references)
    assert [(each["ref"], each["dependsOn"]) for each in found["dependencies"]] == [(references[0], references[1:])]
