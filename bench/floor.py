"""`python -m bench.floor TLS_DIR`: the webhook's own serving stack, answering every POST with a constant.

Same listener, same TLS, same way to its endpoint, same reading of the body: what a decision
costs is what the webhook uses beyond this.
"""

from __future__ import annotations

import gc
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from starlette.types import Receive, Scope, Send

from admission.process import ADMISSION, STATUS
from certs.folder.certificate_folder import CertificateFiles, ensure
from certs.server_names import server_names
from cli.serve import announce
from halfcard import names
from halfcard.caller_tokens import WITHOUT
from serving.direct_routes import DirectRoutes, nothing_here
from serving.lifecycle import Lifecycle, run
from serving.listener import Listener, serve
from serving.log import Log
from serving.tls import ReloadingContext, TlsFiles

_ANSWER: Final = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",'
    b'"response":{"uid":"705ab4f5-6393-11e8-b7cc-000000000000","allowed":true}}'
)
_HEADERS: Final = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_ANSWER))]


class Constant:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        b"".join(parts)
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _ANSWER})


def main(folder: Path) -> int:
    ensure(folder, names=server_names(["127.0.0.1"]), now=datetime.now(UTC))
    files = CertificateFiles(folder)
    log = Log()
    return run(lambda lifecycle: _serve(files, lifecycle, log), log=log)


async def _serve(files: CertificateFiles, lifecycle: Lifecycle, log: Log) -> None:
    app = DirectRoutes(nothing_here, {names.MUTATE_PODS_PATH: Constant()})
    tls = ReloadingContext(TlsFiles(files.certificate, files.key))
    gc.freeze()
    listeners = [Listener(ADMISSION, "127.0.0.1", 0, app, tls), Listener(STATUS, "127.0.0.1", 0, app)]
    await serve(listeners, lifecycle=lifecycle, log=log, on_ready=lambda found: announce(found, WITHOUT, files.ca))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
