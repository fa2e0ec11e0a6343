"""Which proxy leads to a server: what kubectl reads in the kubeconfig, in HTTPS_PROXY and in NO_PROXY."""

from __future__ import annotations

from pathlib import Path

import pytest

from kube.api.access import AccessError
from kube.api.kubeconfig import from_kubeconfig
from kube.api.proxy_choice import Proxy, environment_proxy, read_proxy

from .test_access import kubeconfig

P = "http://p:3128"
CHOSEN: dict[str, tuple[str, str, dict[str, str], str | None]] = {
    "none": ("https", "10.0.0.1", {}, None),
    "one": ("https", "10.0.0.1", {"HTTPS_PROXY": P}, "HTTPS_PROXY"),
    "one in small letters": ("https", "api.example", {"https_proxy": P}, "https_proxy"),
    "both spellings": ("https", "api.example", {"https_proxy": P, "HTTPS_PROXY": P}, "HTTPS_PROXY"),
    "one of another scheme": ("https", "10.0.0.1", {"HTTP_PROXY": P}, None),
    "loopback": ("https", "127.0.0.1", {"HTTPS_PROXY": P}, None),
    "the name of loopback": ("http", "localhost", {"HTTP_PROXY": P}, None),
}
EXCEPTIONS: dict[str, tuple[str, str, bool]] = {
    "an address": ("10.0.0.1", "a, 10.0.0.1", True),
    "an address with our port": ("10.0.0.1", "10.0.0.1:6443", True),
    "an address with another port": ("10.0.0.1", "10.0.0.1:443", False),
    "an address of IPv6": ("fd00::1", "FD00:0::1", True),
    "an address of IPv6 with our port": ("fd00::1", "[fd00::1]:6443", True),
    "a network": ("10.0.0.1", "10.0.0.0/8", True),
    "another network, and none": ("10.0.0.1", "192.168.0.0/16,x/y", False),
    "a network is no name": ("api.example", "10.0.0.0/8", False),
    "the name": ("api.example", "API.example", True),
    "a domain above it": ("api.example", "example", True),
    "a domain above it with a dot": ("api.example", ".example", True),
    "a domain above it with an asterisk": ("api.example", "*.example", True),
    "a dot covers names below it only": ("example", ".example", False),
    "the end of a name": ("api.example", "ample", False),
    "a name with another port": ("api.example", "api.example:443", False),
    "nothing": ("api.example", ", ,:6443", False),
    "all hosts": ("api.example", "*", True),
}


@pytest.mark.parametrize(("scheme", "host", "environ", "variable"), CHOSEN.values(), ids=CHOSEN.keys())
def test_the_environment_names_a_proxy(scheme: str, host: str, environ: dict[str, str], variable: str | None) -> None:
    assert environment_proxy(scheme, host, 6443, environ) == (None if variable is None else (variable, P))


@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize(("host", "exceptions", "direct"), EXCEPTIONS.values(), ids=EXCEPTIONS.keys())
def test_an_exception_means_a_direct_call(host: str, exceptions: str, variable: str, *, direct: bool) -> None:
    found = environment_proxy("https", host, 6443, {"HTTPS_PROXY": P, variable: exceptions})
    assert found == (None if direct else ("HTTPS_PROXY", P))


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        (P, Proxy("p", 3128)),
        ("p:3128", Proxy("p", 3128)),
        ("http://p/", Proxy("p", 80)),
        ("http://me:a%3Ab@[fd00::1]:3128", Proxy("fd00::1", 3128, "Basic bWU6YTpi")),
    ],
)
def test_the_url_of_a_proxy(url: str, proxy: Proxy) -> None:
    assert read_proxy(url) == proxy


REFUSED: dict[str, tuple[str, str, str, str]] = {
    "socks5": ("https://10.0.0.1", "socks5://me:secret@p:1080", "", "got a proxy with socks5://, and .*kubectl proxy"),
    "a proxy by TLS": ("https://10.0.0.1", "", "https://me:secret@p", "HTTPS_PROXY: .*add 10.0.0.1 to NO_PROXY"),
    "no host": ("https://10.0.0.1", "http://me:secret@", "", "proxy-url: got a proxy without a host"),
    "a server without TLS": ("http://10.0.0.1", "http://me:secret@p", "", "proxy-url is set, .* for http://;"),
}


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED.keys())
def test_a_proxy_that_only_kubectl_can_use_is_refused_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: tuple[str, str, str, str]
) -> None:
    server, field, variable, why = row
    monkeypatch.setenv("HTTPS_PROXY", variable)
    with pytest.raises(AccessError, match=why) as refused:
        from_kubeconfig(kubeconfig(tmp_path, {"server": server, "proxy-url": field}, {}))
    assert "secret" not in str(refused.value)


def test_the_proxy_of_the_kubeconfig_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://other:1")
    monkeypatch.setenv("NO_PROXY", "*")
    cluster = {"server": "https://10.0.0.1", "proxy-url": P}
    assert from_kubeconfig(kubeconfig(tmp_path, cluster, {})).proxy == Proxy("p", 3128)
    monkeypatch.setenv("NO_PROXY", "")
    assert from_kubeconfig(kubeconfig(tmp_path, {"server": "https://10.0.0.1"}, {})).proxy == Proxy("other", 1)
