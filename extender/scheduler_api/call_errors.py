"""Reads kube-scheduler's errors about calls to the extender, and knows the fix of each. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from extender.scheduler_api.scheduler_contact import HandshakeFailure
from halfcard import names

_FAILED: Final = re.compile(r'(?:Post|Get) "?(?P<url>https?://[^"\s]+?)"?: (?P<why>.+)', re.DOTALL)
_STATUS: Final = re.compile(r"with extender at URL (?P<url>https?://\S+), (?P<why>code \d+)")
_CALLED: Final = (
    names.FILTER_PATH,
    names.GPU_ADMISSION_FILTER_PATH,
    names.PRIORITIZE_PATH,
    names.BIND_PATH,
    names.PREEMPT_PATH,
)
_VERBS: Final = tuple([path[path.rindex("/") :] for path in _CALLED])

COPY: Final = f"copy the Secret {names.SCHEDULER_TLS} again, by deploy/scheduler/copy-certificate.sh on its machine"
_ADDRESS: Final = (
    f"let urlPrefix in the scheduler's configuration name the clusterIP of the Service {names.EXTENDER_SERVICE}"
)
_SERVER_NAME: Final = "set serverName in the scheduler's configuration as in deploy/scheduler"
CLOSED: Final = f"the extender closed the connection, most often because of the client certificate: {COPY}"
LOGS: Final = "read the logs of the extender's replicas, and check that this machine's network reaches them"
_FIXES: Final = {
    "tls: expired certificate": f"the scheduler's client certificate has expired: {COPY}",
    "tls: certificate required": f"set certFile and keyFile in the scheduler's configuration; if they are set, {COPY}",
    "certificate has expired": "the extender's own certificate has expired, or the scheduler's clock is wrong",
    "x509: certificate is valid for": _SERVER_NAME,
    "x509: cannot validate certificate for": _SERVER_NAME,
    "x509:": f"caFile is of another CA: {COPY}, and restart kube-scheduler, which reads ca.crt only when it starts",
    "remote error: tls:": f"the extender does not accept the scheduler's client certificate: {COPY}",
    "EOF": CLOSED,
    "connection reset": CLOSED,
    "broken pipe": CLOSED,
    "closed": CLOSED,
    "HTTP response to HTTPS client": "the extender has no TLS: set enableHTTPS: false, or start it with --tls-dir",
    "connection refused": f"no replica listens there: {_ADDRESS}, and check that its replicas are ready",
    "no such host": f"the scheduler cannot use the cluster's DNS: {_ADDRESS}",
    "code 404": "end urlPrefix in the scheduler's configuration with /scheduler, as in deploy/scheduler",
}
"""A part of the error, and the fix; the first match counts."""

FIX_BY_FAILURE: Final[Mapping[str, str]] = {
    HandshakeFailure.EXPIRED: _FIXES["tls: expired certificate"],
    HandshakeFailure.UNTRUSTED: _FIXES["remote error: tls:"],
    HandshakeFailure.MISSING: _FIXES["tls: certificate required"],
    HandshakeFailure.DISTRUSTED: _FIXES["x509:"],
    HandshakeFailure.PLAIN: "set enableHTTPS: true and tlsConfig in the scheduler's configuration",
}
"""The fix by what the extender saw: the scheduler sees only that it closed the connection."""


class ExtenderError(NamedTuple):
    """A call that failed: the URL, why in the scheduler's words, and the fix."""

    url: str
    why: str
    fix: str


def read_error(message: str) -> ExtenderError | None:
    """Reads a message of the condition PodScheduled; None for one that is not about a call to our extender."""
    found = _FAILED.search(message) or _STATUS.search(message)
    if found is None or not urlsplit(found["url"]).path.endswith(_VERBS):
        return None
    why = found["why"].strip()
    return ExtenderError(found["url"], why, next((fix for part, fix in _FIXES.items() if part in why), LOGS))
