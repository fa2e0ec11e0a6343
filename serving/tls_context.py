"""The TLS context of a server, for a certificate chain and its key."""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


def server_context(pair: bytes) -> ssl.SSLContext:
    """Returns a context for a chain and its key, both in PEM; clients need no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would skip the check of its client certificate, though the client CA may have changed.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    _load_pair(context, pair)
    return context


def _load_pair(context: ssl.SSLContext, pair: bytes) -> None:
    """Loads the pair from a private copy, so that exactly the checked bytes are loaded."""
    with _private_file() as (copy, path):
        copy.write(pair)
        copy.flush()
        context.load_cert_chain(path)


@contextmanager
def _private_file() -> Iterator[tuple[IO[bytes], str]]:
    """Yields a file in memory where the system has that, so that the root file system can be read-only."""
    if sys.platform == "linux":
        with open(os.memfd_create("tls-pair", os.MFD_CLOEXEC), "wb") as pair:  # noqa: PTH123 - a descriptor has no path
            yield pair, f"/proc/self/fd/{pair.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as pair:
            yield pair, pair.name
