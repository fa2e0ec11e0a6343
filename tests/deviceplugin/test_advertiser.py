"""A bug in the handling of pods, node and cards ends the offering, so that it starts again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from deviceplugin.advertiser import Advertiser
from deviceplugin.kubelet.plugins import Plugins
from deviceplugin.kubelet.pod_resources import PodResources

from .kubelet.stub_handler import StubHandler


async def nobody_holds() -> dict[str, set[str]]:
    return {}


async def failing() -> None:
    raise ZeroDivisionError


async def test_a_bug_in_the_first_read_ends_the_advertiser(tmp_path: Path) -> None:
    not_reached: Any = None
    plugins = Plugins(StubHandler(), tmp_path, PodResources(tmp_path / "pod-resources.sock"))
    offering = Advertiser(
        not_reached,
        not_reached,
        plugins,
        not_reached,
        held=nobody_holds,
        until_known=failing,
        isolation=not_reached,
        stale=asyncio.Event(),
        is_made_up=True,
    )
    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.timeout(10):
            await offering.run()
    assert raised.group_contains(ZeroDivisionError)
