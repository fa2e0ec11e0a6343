from __future__ import annotations

from ipaddress import ip_address

import pytest

from certs.server_names import InvalidServerName, server_names


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("halfcard.svc", "halfcard.svc"),
        ("Halfcard.SVC", "halfcard.svc"),
        ("*.halfcard.svc", "*.halfcard.svc"),
        ("localhost", "localhost"),
        ("127.0.0.1", ip_address("127.0.0.1")),
        ("0:0::1", ip_address("::1")),
    ],
)
def test_a_server_name_has_one_spelling(text: str, want: object) -> None:
    assert server_names([text]) == {want}


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a..b", "-a", "a-", "*", "a.*.b", "10.0.0.256", "1.2.3", "a" * 64, "a." * 127 + "a", "a\n"],
)
def test_what_is_neither_a_dns_name_nor_an_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidServerName, match="neither an IP address nor a DNS name"):
        server_names([text])


def test_a_certificate_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidServerName, match="no server name"):
        server_names([])
