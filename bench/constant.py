"""`python -m bench.constant TLS_DIR HOST:PORT`: a webhook that allows everything, on the webhook's own serving stack.

It measures what the API server pays for calling any webhook at all.
"""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path
from typing import Final

from starlette.types import Receive, Scope, Send

from halfcard import names
from serving.address import Address, parse_address
from serving.direct_routes import DirectRoutes, nothing_here
from serving.lifecycle import Lifecycle, run
from serving.listener import Listener, serve
from serving.log import Log
from serving.tls import ReloadingContext, TlsFiles

_UID: Final = re.compile(rb'"uid":"([^"]*)"')  # the request's own: the API server writes it first
_ANSWER: Final = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"%s","allowed":true}}'


class Yes:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        found = _UID.search(b"".join(parts))
        answer = _ANSWER % (found[1] if found else b"")
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def main(folder: Path, address: Address) -> int:
    log = Log()
    return run(lambda lifecycle: _serve(folder, address, lifecycle, log), log=log)


async def _serve(folder: Path, address: Address, lifecycle: Lifecycle, log: Log) -> None:
    app = DirectRoutes(nothing_here, dict.fromkeys((names.MUTATE_PODS_PATH, names.VALIDATE_PODS_PATH), Yes()))
    tls = ReloadingContext(TlsFiles(folder / "tls.crt", folder / "tls.key"))
    gc.freeze()
    await serve([Listener("constant", address.host, address.port, app, tls)], lifecycle=lifecycle, log=log)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), parse_address(sys.argv[2])))
