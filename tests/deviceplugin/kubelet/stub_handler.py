"""An allocation handler that grants by a simple rule."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from deviceplugin.kubelet.messages import Granted, RefusedError


class StubHandler:
    """Refuses with `refusal` if it is set; starts of containers wait for `gate`."""

    def __init__(self) -> None:
        self.refusal = ""
        self.started: list[tuple[str, tuple[str, ...]]] = []
        self.waiting = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def allocate(self, resource: str, ids: Sequence[str]) -> Granted:
        if self.refusal:
            raise RefusedError(self.refusal)
        return Granted(
            cdi=(f"halfcard.dev/slot={len(ids)}",),
            devices=((f"/host/{ids[0]}", "/dev/nvidia0"),),
            mounts=(("/host/limits.json", "/etc/limits.json"),),
            env={"RESOURCE": resource, "IDS": " ".join(ids)},
        )

    async def prestart(self, resource: str, ids: Sequence[str]) -> None:
        self.waiting += 1
        await self.gate.wait()
        if self.refusal:
            raise RefusedError(self.refusal)
        self.started.append((resource, tuple(ids)))
