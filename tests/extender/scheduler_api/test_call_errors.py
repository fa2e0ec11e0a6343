"""What kube-scheduler says about calls that failed, and the fix that each needs. Words of version 1.36."""

from __future__ import annotations

from typing import Final

import pytest

from extender.scheduler_api.call_errors import read_error

URL: Final = "https://10.96.34.56:443/scheduler/filter"
FIXES: Final[dict[str, tuple[str, str]]] = {
    "no replica": ("dial tcp 10.96.34.56:443: connect: connection refused", "clusterIP"),
    "another CA in caFile": (
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        "caFile is of another CA",
    ),
    "another serverName": (
        "tls: failed to verify certificate: x509: certificate is valid for halfcard-extender, not elsewhere",
        "set serverName",
    ),
    "no serverName": (
        "tls: failed to verify certificate: x509: cannot validate certificate for 10.96.34.56",
        "set serverName",
    ),
    "the extender's certificate has expired": (
        "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time …",
        "the extender's own certificate",
    ),
    "the client certificate has expired": ("remote error: tls: expired certificate", "client certificate has expired"),
    "no client certificate": ("remote error: tls: certificate required", "certFile and keyFile"),
    "a client certificate of another CA": ("remote error: tls: unknown certificate authority", "does not accept"),
    "the connection was closed": ("EOF", "halfcard-scheduler-tls"),
    "the connection was reset": ("read tcp 10.0.0.1:1->10.96.34.56:443: read: connection reset by peer", "closed"),
    "the connection was closed while writing": ("write tcp 10.0.0.1:1->10.96.34.56:443: write: broken pipe", "closed"),
    "the connection was closed while idle": ("http: server closed idle connection", "halfcard-scheduler-tls"),
    "the extender has no TLS": ("http: server gave HTTP response to HTTPS client", "enableHTTPS: false"),
    "a name": ("dial tcp: lookup halfcard-extender on 10.0.0.2:53: no such host", "clusterIP"),
    "no route": ("dial tcp 10.96.34.56:443: i/o timeout", "network reaches them"),
    "too slow": ("context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "logs"),
}


@pytest.mark.parametrize(("why", "fix"), FIXES.values(), ids=FIXES)
def test_each_error_has_the_fix_of_its_cause(why: str, fix: str) -> None:
    found = read_error(f'running "filter" of pod: Post "{URL}": {why}')
    assert found is not None
    assert (found.url, found.why) == (URL, why)
    assert fix in found.fix


def test_a_wrong_path_is_recognised_by_its_status() -> None:
    found = read_error("failed filter with extender at URL https://10.96.34.56:443/filter, code 404")
    assert found is not None
    assert (found.url, found.why) == ("https://10.96.34.56:443/filter", "code 404")
    assert "end urlPrefix" in found.fix


OTHERS: Final = (
    "",
    "0/3 nodes are available: 3 Insufficient tencent.com/vcuda-core.",
    'Post "https://10.0.0.1:6443/api/v1/namespaces/team/pods/p/binding": EOF',
    "no card has 50 per cent free",
    f'Post "{URL}": ',
)


@pytest.mark.parametrize("message", OTHERS)
def test_other_messages_are_not_about_the_extender(message: str) -> None:
    assert read_error(message) is None
