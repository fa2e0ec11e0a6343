"""`python -m bench.constant_extender TLS_DIR CLIENT_CA KUBECONFIG HOST:PORT`: an extender that agrees to everything.

What kube-scheduler pays for asking anybody at all is measured with it: the same serving stack, every node feasible,
none better than another, and a Binding without a record.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from halfcard import names
from kube.api.calls import ApiCalls
from kube.api.kubeconfig import from_kubeconfig
from serving.address import Address, parse_address
from serving.direct_routes import DirectRoutes, nothing_here
from serving.lifecycle import Lifecycle, run
from serving.listener import Listener, serve
from serving.log import Log
from serving.request_body import JSON, body_in_time, respond
from serving.tls import ReloadingContext, TlsFiles

_MOST: int = 64 * 2**20


class _Asked(msgspec.Struct, rename="pascal"):
    node_names: msgspec.Raw


_ASKED = msgspec.json.Decoder(_Asked)


class Constant:
    """Answers by the last word of the path."""

    def __init__(self, calls: ApiCalls) -> None:
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await body_in_time(scope, receive, _MOST)
        verb = scope["path"].rpartition("/")[2]
        await respond(send, 200, JSON, await getattr(self, f"_{verb}")(body))

    async def _filter(self, body: bytes) -> bytes:
        return b'{"NodeNames":%s}' % bytes(_ASKED.decode(body).node_names)

    async def _prioritize(self, _body: bytes) -> bytes:
        return b"[]"

    async def _bind(self, body: bytes) -> bytes:
        asked: dict[str, Any] = msgspec.json.decode(body)
        name, namespace = asked["PodName"], asked["PodNamespace"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": asked["PodUID"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": asked["Node"]},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        answer = await self._calls.post(path, msgspec.json.encode(binding))
        return b"{}" if answer.status == 201 else msgspec.json.encode({"Error": answer.message()})


def main(folder: Path, authority: Path, kubeconfig: Path, address: Address) -> int:
    log = Log()

    async def begin(lifecycle: Lifecycle) -> None:
        constant = Constant(ApiCalls(from_kubeconfig(kubeconfig)))
        paths = (names.FILTER_PATH, names.PRIORITIZE_PATH, names.BIND_PATH)
        app = DirectRoutes(nothing_here, dict.fromkeys(paths, constant))
        tls = ReloadingContext(TlsFiles(folder / "tls.crt", folder / "tls.key", authority))
        await serve([Listener("constant", address.host, address.port, app, tls)], lifecycle=lifecycle, log=log)

    return run(begin, log=log)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), parse_address(sys.argv[4])))
