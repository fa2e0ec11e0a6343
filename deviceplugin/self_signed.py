"""A certificate that the agent issues for itself: its callers prove who they are, and do not ask who answers.

Its key exists only in memory, and each start issues another one. A process of its own issues it, because the library
for that would cost the agent 13 MB for good.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from typing import Final

from serving.errors import CannotServeError
from serving.log import Log
from serving.tls_context import server_context

_ISSUER: Final = "deviceplugin.certificate"


class SelfSigned:
    def __init__(self, pair: bytes) -> None:
        self.context: ssl.SSLContext = server_context(pair)

    async def watch(self, log: Log) -> None:
        """Waits until cancelled: there is no file to follow."""
        await asyncio.Event().wait()


async def self_signed(name: str) -> SelfSigned:
    pipe = asyncio.subprocess.PIPE
    issuer = await asyncio.create_subprocess_exec(sys.executable, "-m", _ISSUER, name, stdout=pipe, stderr=pipe)
    pair, errors = await issuer.communicate()
    if issuer.returncode:
        raise CannotServeError(f"python -m {_ISSUER} {name}: {errors.decode(errors='replace').strip()}")
    return SelfSigned(pair)
