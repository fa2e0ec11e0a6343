"""Kubelet's socket counts as recreated only if another socket has its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deviceplugin.kubelet.kubelet_socket import KubeletSocket


def _replace(file: Path) -> None:
    file.unlink()
    file.touch()


@pytest.mark.parametrize(
    ("happens", "expected"),
    [(lambda _file: None, False), (Path.unlink, False), (_replace, True)],
    ids=["nothing", "gone", "another"],
)
async def test_only_another_socket_counts_as_recreated(
    folder: Path,
    happens: Callable[[Path], None],
    expected: bool,  # noqa: FBT001
) -> None:
    socket = KubeletSocket(folder)
    socket.path.touch()
    since = socket.identity()
    happens(socket.path)
    assert await socket.is_recreated(since, 0.1) is expected


async def test_a_socket_that_did_not_exist_is_recreated_when_it_appears(folder: Path) -> None:
    socket = KubeletSocket(folder)
    assert socket.identity() is None
    assert not (await socket.is_recreated(None, 0))
    socket.path.touch()
    assert await socket.is_recreated(None, 0)
