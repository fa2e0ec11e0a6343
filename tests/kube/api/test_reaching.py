"""The way to an API server, for calls and for lists: proxies, the name in its certificate, headers that arrive."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from devcluster.control_plane.pki import ClusterAuthority
from kube.api.access import Access
from kube.api.calls import ApiCalls, NotSentError
from kube.api.impersonation import Impersonation
from kube.api.kubeconfig import from_kubeconfigs
from kube.api.list_watch import Collection

from ..listening import JsonHandler, listening
from ..tunnelling_proxy import tunnelling_proxy
from .test_access import kubeconfig

PODS = "/api/v1/pods"
SEEN: list[list[str]] = []


class Handler(JsonHandler):
    def do_GET(self) -> None:  # noqa: N802  (http.server's name)
        SEEN.append(self.headers.get_all("Impersonate-Group") or [])
        self.answer(200, {"metadata": {"resourceVersion": "1"}, "items": []})


@pytest.fixture
def authority(tmp_path: Path) -> ClusterAuthority:
    return ClusterAuthority(tmp_path / "pki")


@pytest.fixture
def server(authority: ClusterAuthority) -> Iterator[str]:
    """A server on 127.0.0.1 whose certificate names only `api`."""
    SEEN.clear()
    pair = authority.server("tls", [], names=["api"])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    with listening(Handler, tls=tls) as port:
        yield f"https://127.0.0.1:{port}"


def access(folder: Path, server: str, **cluster: Any) -> Access:
    found = {"server": server, "certificate-authority": "pki/ca.crt"} | cluster
    groups = Impersonation("u", groups=("a", "b"))
    return from_kubeconfigs([kubeconfig(folder, found, {})], impersonation=groups)


async def both(access: Access) -> None:
    """A list and a call."""
    assert [*Collection(access, PODS, dict[str, Any]).pages()] == [([], "1")]
    with closing(ApiCalls(access)) as calls:
        assert (await calls.get(PODS)).status == 200


async def test_the_certificate_must_have_the_servers_other_name(tmp_path: Path, server: str) -> None:
    await both(access(tmp_path, server, **{"tls-server-name": "api"}))
    assert SEEN == [["a", "b"], ["a", "b"]]


async def test_a_certificate_with_another_name_is_refused(tmp_path: Path, server: str) -> None:
    reached = access(tmp_path, server)
    with pytest.raises(ssl.SSLError, match="IP address mismatch"):
        next(Collection(reached, PODS, dict[str, Any]).pages())
    with closing(ApiCalls(reached)) as calls, pytest.raises(NotSentError, match="IP address mismatch"):
        await calls.get(PODS)


async def test_calls_and_lists_go_through_the_proxy_of_the_kubeconfig(tmp_path: Path, server: str) -> None:
    with tunnelling_proxy() as proxy:
        way = {"tls-server-name": "api", "proxy-url": f"http://me:p%40ss@127.0.0.1:{proxy.port}"}
        await both(access(tmp_path, server, **way))
    secret = "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert proxy.tunnels == [(server.removeprefix("https://"), secret)] * 2
    assert len(SEEN) == 2


async def test_a_proxy_that_refuses_is_named_without_its_password(tmp_path: Path, server: str) -> None:
    with tunnelling_proxy(refuses=True) as proxy:
        reached = access(tmp_path, server, **{"proxy-url": f"http://me:secret@127.0.0.1:{proxy.port}"})
        refusal = rf"the proxy 127\.0\.0\.1:{proxy.port} does not lead there: .*407"
        with pytest.raises(OSError, match=refusal) as refused:
            next(Collection(reached, PODS, dict[str, Any]).pages())
        with closing(ApiCalls(reached)) as calls, pytest.raises(NotSentError, match=refusal):
            await calls.get(PODS)
    assert "secret" not in str(refused.value)
