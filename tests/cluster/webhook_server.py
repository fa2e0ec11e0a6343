"""The webhook of a test: an HTTPS server on the host side of the cluster."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from devcluster.cluster import Cluster
from devcluster.objects import Object


@contextmanager
def webhook_server(cluster: Cluster, name: str, judge: Callable[[Object], Object]) -> Iterator[int]:
    """Starts a server that answers an AdmissionReview with the result of `judge`; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = review["request"]
            payload = json.dumps({**review, "response": {"uid": request["uid"], **judge(request)}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_: object) -> None:
            pass

    pair = cluster.authority.server(name, [], names=[name])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    with ThreadingHTTPServer((cluster.network.host_address, 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()
