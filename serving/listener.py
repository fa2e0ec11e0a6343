"""All listeners of a process, from bind to a stop that fails no call.

Law of the stop: first readiness turns false, and requests are served normally until clients have noticed (`grace_s`);
then every answer closes its connection, so that clients leave between two requests (`drain_s`); then the sockets
close and requests that have begun are finished (`finish_s`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, cast

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.lifespan.on import LifespanOn

from serving.acceptor import Acceptor, HandshakeObserver, ServerTls
from serving.address import Address, bind
from serving.client_limits import ClientLimits
from serving.connection import Traffic
from serving.errors import CannotServeError
from serving.lifecycle import Lifecycle
from serving.log import Log


@dataclass(frozen=True, slots=True)
class Listener:
    name: str
    host: str
    port: int
    app: ASGIApp
    tls: ServerTls | None = None
    limits: ClientLimits = field(default_factory=ClientLimits)
    handshakes: HandshakeObserver | None = None


@dataclass(frozen=True, slots=True)
class StopTimings:
    """The phases of a stop; their sum stays below the 30 s of a pod's grace period."""

    grace_s: float = 8.0
    drain_s: float = 2.0
    finish_s: float = 15.0


async def serve(
    listeners: Sequence[Listener],
    *,
    lifecycle: Lifecycle,
    log: Log,
    stopping: StopTimings = StopTimings(),
    on_ready: Callable[[Mapping[str, Address]], None] | None = None,
) -> None:
    """Serves until `lifecycle` stops; cancelling ends it at once. `on_ready` receives the bound addresses."""
    async with AsyncExitStack() as stack:
        acceptors = [await _open(listener, stack, log=log) for listener in listeners]
        for tls in {listener.tls for listener in listeners if listener.tls is not None}:
            stack.callback(asyncio.create_task(tls.watch(log), name="reload TLS certificates").cancel)
        for acceptor in acceptors:
            acceptor.start()
            log.event("listening", listener=acceptor.name, address=str(acceptor.address))
        if on_ready is not None:
            on_ready({acceptor.name: acceptor.address for acceptor in acceptors})
        await lifecycle.wait_until_stopping()
        await _stop(acceptors, stopping, log=log)


async def _open(listener: Listener, stack: AsyncExitStack, *, log: Log) -> Acceptor:
    """Starts the application and binds its socket; closing `stack` undoes both."""
    config = _uvicorn_config(listener.app)
    app_state = await _start_application(listener.name, config, stack)
    listening = bind(Address(listener.host, listener.port), listener=listener.name)
    traffic = Traffic(listener.name, listener.limits, config=config, app_state=app_state)
    acceptor = Acceptor(listening, traffic, tls=listener.tls, handshakes=listener.handshakes, log=log)
    stack.callback(acceptor.abort)
    return acceptor


def _uvicorn_config(app: ASGIApp) -> Config:
    config = Config(
        cast(Any, app),
        interface="asgi3",
        ws="none",
        workers=1,
        proxy_headers=False,
        log_config=None,
        log_level="error",
        access_log=False,
    )
    config.load()
    return config


async def _start_application(listener: str, config: Config, stack: AsyncExitStack) -> dict[str, Any]:
    lifespan = LifespanOn(config)
    await lifespan.startup()
    if lifespan.should_exit:
        raise CannotServeError(f"listener {listener}: its application failed to start, as logged above")
    stack.push_async_callback(lifespan.shutdown)
    return lifespan.state


async def _stop(acceptors: Sequence[Acceptor], stopping: StopTimings, *, log: Log) -> None:
    await asyncio.sleep(stopping.grace_s)
    for acceptor in acceptors:
        acceptor.drain()
    await asyncio.sleep(stopping.drain_s)
    try:
        async with asyncio.timeout(stopping.finish_s):
            await asyncio.gather(*(acceptor.close() for acceptor in acceptors))
    except TimeoutError:
        log.warning("requests cut off at shutdown", requests=sum(acceptor.abort() for acceptor in acceptors))
    log.event("stopped")
