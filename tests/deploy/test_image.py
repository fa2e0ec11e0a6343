"""The image: equal files are equal bytes, nothing is taken without a decision, and every process is in it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
from pathlib import Path

import pytest

from deploy.image.archive import archive, digest
from deploy.image.contents import LEFT_OUT, TAKEN
from deploy.image.debian import packages_of, unaccounted
from deploy.image.errors import CannotBuildError
from deploy.image.layers import Layer, layer
from deploy.image.root import LOCK, REPOSITORY, build_libraries, own_packages, wheels_of
from halfcard import names

DEPENDS = """\
python3.11-minimal
 |PreDepends: libc6
  PreDepends: libc7
  Depends: zlib1g
  Recommends: python3.11
  Conflicts: binfmt-support
 |Depends: media-types
  Depends: mime-support
"""


def some_files(folder: Path, *, time: int, mode: int) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "tmp").mkdir()
    (folder / "bin" / "program").write_text("does something")
    (folder / "bin" / "program").chmod(mode)
    (folder / "bin" / "other").symlink_to("program")
    os.utime(folder / "bin" / "program", (time, time))
    return folder


def test_equal_files_are_equal_bytes_whatever_their_owner_and_time(tmp_path: Path) -> None:
    one = layer(some_files(tmp_path / "one", time=1, mode=0o700))
    assert one == layer(some_files(tmp_path / "two", time=2, mode=0o755))
    assert one != layer(some_files(tmp_path / "three", time=1, mode=0o644))


def test_a_layer_belongs_to_root_and_only_its_tmp_is_writable_for_all(tmp_path: Path) -> None:
    made = layer(some_files(tmp_path, time=1, mode=0o755))
    with tarfile.open(fileobj=io.BytesIO(made.packed), mode="r:gz") as opened:
        found = {each.name: (each.uid, each.gid, each.mtime, oct(each.mode)) for each in opened}
    assert found["bin"] == found["bin/program"] == (0, 0, 0, "0o755")
    assert found["tmp"] == (0, 0, 0, "0o1777")


def test_an_archive_describes_the_same_image_to_both_kinds_of_engines() -> None:
    layers = [Layer(b"base", "sha256:1"), Layer(b"own", "sha256:2")]
    packed = archive(layers, name="halfcard.dev/halfcard:1", architecture="amd64", labels={})
    with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
        files = {each.name: opened.extractfile(each).read() for each in opened}  # type: ignore[union-attr]  # no folders
    (by_docker,) = json.loads(files["manifest.json"])
    manifest = json.loads(files[f"blobs/{digest(packed).replace(':', '/')}"])
    assert by_docker["RepoTags"] == ["halfcard.dev/halfcard:1"]
    assert [files[each] for each in by_docker["Layers"]] == [b"base", b"own"]
    assert by_docker["Config"] == f"blobs/{manifest['config']['digest'].replace(':', '/')}"
    assert json.loads(files[by_docker["Config"]])["rootfs"]["diff_ids"] == ["sha256:1", "sha256:2"]
    for name, content in files.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"


def test_an_undecided_dependency_is_reported_by_name() -> None:
    assert unaccounted(DEPENDS, {"libc6": "", "mime-support": "", "zlib1g": ""}) == []
    assert unaccounted(DEPENDS, {"media-types": ""}) == ["libc6 | libc7", "zlib1g"]


def test_no_package_is_both_included_and_excluded() -> None:
    assert not TAKEN.keys() & LEFT_OUT.keys()


def test_an_apt_without_hashes_gives_an_error_with_the_fix() -> None:
    with pytest.raises(CannotBuildError, match="apt-get update"):
        packages_of("'http://example.invalid/libc6.deb' libc6.deb 10\n")


def test_all_pinned_wheels_but_those_of_the_build_are_in_it() -> None:
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==", LOCK.read_text(), re.MULTILINE)
    kept = re.findall(r"^([A-Za-z0-9._-]+)==", wheels_of(LOCK.read_text()), re.MULTILINE)
    assert set(pinned) - set(kept) == {"setuptools"} and len(kept) == len(pinned) - 1


def test_every_process_is_in_it() -> None:
    assert {"admission", "certs", "cli", "deviceplugin", "extender", "quota"} <= {*own_packages()}
    assert all((REPOSITORY / name / "__init__.py").is_file() for name in own_packages())


def test_the_isolation_libraries_are_in_it_without_a_path_of_the_build(tmp_path: Path) -> None:
    build_libraries(tmp_path / "made")
    made = {file.name: file.read_bytes() for file in (tmp_path / "made").iterdir()}
    assert made.keys() == {*names.ISOLATION_LIBRARIES}
    assert [name for name, content in made.items() if str(REPOSITORY).encode() in content or b"/tmp/" in content] == []


def test_the_dockerfile_makes_the_same_image() -> None:
    text = (REPOSITORY / "deploy" / "image" / "Dockerfile").read_text()
    packed = archive([], name="a:1", architecture="amd64", labels={})
    with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
        (manifest,) = json.load(opened.extractfile("manifest.json"))  # type: ignore[arg-type]  # it is a file
        wanted = json.load(opened.extractfile(manifest["Config"]))["config"]  # type: ignore[arg-type]  # as above
    said = dict(re.findall(r"^(USER|ENTRYPOINT|CMD|WORKDIR) (.+)$", text, re.MULTILINE))
    assert said == {
        "USER": wanted["User"],
        "ENTRYPOINT": json.dumps(wanted["Entrypoint"]),
        "CMD": json.dumps(wanted["Cmd"]),
        "WORKDIR": wanted["WorkingDir"],
    }
    assert re.findall(r"^ENV (.+)$", text, re.MULTILINE) == [" ".join(wanted["Env"])]
