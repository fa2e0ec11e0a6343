from __future__ import annotations

import asyncio
import io

from admission.process import _watched
from serving.log import Log


def test_a_background_job_that_dies_is_in_the_log_with_its_reason() -> None:
    async def keep_certificates() -> None:
        raise RuntimeError("disk on fire")

    lines = io.StringIO()
    asyncio.run(_watched(keep_certificates(), Log(stream=lines)))

    assert "keep_certificates" in lines.getvalue()
    assert "disk on fire" in lines.getvalue()
