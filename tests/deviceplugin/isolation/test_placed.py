"""The libraries on the node: complete, never written over, and readable by every user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deviceplugin.isolation.placed import place
from deviceplugin.isolation.way_in import NotHeldError
from halfcard import names


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "image"
    folder.mkdir()
    for name in names.ISOLATION_LIBRARIES:
        (folder / name).write_bytes(name.encode())
    return folder


def contents(folder: Path) -> Iterator[tuple[str, bytes, int]]:
    return ((file.name, file.read_bytes(), file.stat().st_ino) for file in sorted(folder.iterdir()))


def test_the_libraries_and_the_list_of_preloaded_ones_are_placed(source: Path, tmp_path: Path) -> None:
    folder = place(source, tmp_path / "node")
    assert {name: content for name, content, _ in contents(folder)} == {
        **{name: name.encode() for name in names.ISOLATION_LIBRARIES},
        "ld.so.preload": b"/run/halfcard/library/halfcard-preload.so\n",
    }
    assert {file.stat().st_mode & 0o777 for file in (folder, *folder.iterdir())} == {0o755}


def test_another_version_lies_beside_the_first_and_changes_no_file_of_it(source: Path, tmp_path: Path) -> None:
    first = place(source, tmp_path / "node")
    before = [*contents(first)]
    (source / "libcuda.so.1").write_bytes(b"newer")
    assert place(source, tmp_path / "node") != first
    (source / "libcuda.so.1").write_bytes(b"libcuda.so.1")
    assert place(source, tmp_path / "node") == first
    assert [*contents(first)] == before


def test_what_an_agent_left_half_written_is_not_used(source: Path, tmp_path: Path) -> None:
    folder = place(source, tmp_path / "node")
    folder.rename(folder.with_name(folder.name + ".new"))
    (folder.with_name(folder.name + ".new") / "libcuda.so.1").write_bytes(b"half")
    assert (place(source, tmp_path / "node") / "libcuda.so.1").read_bytes() == b"libcuda.so.1"


def test_changed_libraries_on_the_node_hold_nobody(source: Path, tmp_path: Path) -> None:
    (place(source, tmp_path / "node") / "libcuda.so.1").write_bytes(b"other")
    with pytest.raises(NotHeldError, match="got other files than the agent placed there; remove it"):
        place(source, tmp_path / "node")


def test_an_agent_without_libraries_holds_nobody(tmp_path: Path) -> None:
    with pytest.raises(NotHeldError, match=r"cannot be placed: .*libcuda"):
        place(tmp_path / "missing", tmp_path / "node")
