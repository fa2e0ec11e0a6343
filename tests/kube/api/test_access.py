from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from devcluster.control_plane.pki import ClusterAuthority
from kube.api.access import AccessError, from_service_account
from kube.api.impersonation import Impersonation
from kube.api.kubeconfig import from_kubeconfig, from_kubeconfigs, from_server


@pytest.fixture
def authority(tmp_path: Path) -> ClusterAuthority:
    return ClusterAuthority(tmp_path / "pki")


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "config"
    content = {
        "current-context": "here",
        "contexts": [
            {"name": "there", "context": {"cluster": "nowhere", "user": "me"}},
            {"name": "here", "context": {"cluster": "c", "user": "me"}},
        ],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
    }
    path.write_text(json.dumps(content))
    return path


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def test_a_certificate_in_the_kubeconfig_or_in_a_file_is_used(tmp_path: Path, authority: ClusterAuthority) -> None:
    pair = authority.client("me", name="me", groups=[])
    inline = kubeconfig(
        tmp_path,
        {"server": "https://10.0.0.1:6443", "certificate-authority-data": encoded(authority.certificate)},
        {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)},
    )
    access = from_kubeconfig(inline)
    assert (access.host, access.port, access.prefix) == ("10.0.0.1", 6443, "")
    assert access.tls is not None
    assert len(access.tls().get_ca_certs()) == 1
    beside = kubeconfig(
        tmp_path,
        {"server": "https://10.0.0.1/k8s/c1/", "certificate-authority": "pki/ca.crt"},
        {"client-certificate": "pki/me.crt", "client-key": str(pair.key)},
    )
    access = from_kubeconfig(beside)
    assert (access.port, access.prefix) == (443, "/k8s/c1")
    assert access.tls is not None
    assert access.tls().verify_mode is ssl.CERT_REQUIRED


def test_a_token_file_is_read_for_every_call(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    access = from_kubeconfig(kubeconfig(tmp_path, {"server": "http://127.0.0.1:8001"}, {"tokenFile": "token"}))
    assert access.tls is None
    assert dict(access.headers())["Authorization"] == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    assert dict(access.headers())["Authorization"] == "Bearer two"


def test_a_user_without_credentials_sends_no_token(tmp_path: Path) -> None:
    access = from_kubeconfig(kubeconfig(tmp_path, {"server": "http://127.0.0.1:8001"}, {}))
    assert "Authorization" not in dict(access.headers())


def test_a_server_is_unverified_only_if_the_kubeconfig_says_so(tmp_path: Path) -> None:
    cluster = {"server": "https://10.0.0.1:6443", "insecure-skip-tls-verify": True}
    access = from_kubeconfig(kubeconfig(tmp_path, cluster, {"token": "t"}))
    assert access.tls is not None
    assert access.tls().verify_mode is ssl.CERT_NONE


SERVER = {"server": "https://10.0.0.1:6443"}
NO_BASE64 = SERVER | {"certificate-authority-data": "@@"}
NO_PEM = SERVER | {"certificate-authority-data": base64.b64encode(b"x").decode()}
UNUSABLE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a certificate without its key": (SERVER, {"client-certificate-data": "Cg=="}, "not both; copy the missing one"),
    "no server": ({}, {}, 'got server ""; it is a URL'),
    "a server that is no URL": ({"server": "10.0.0.1:6443"}, {}, "it is a URL"),
    "an authority that is no base64": (NO_BASE64, {}, "certificate-authority-data is no base64"),
    "an authority that is no certificate": (NO_PEM, {}, "no PEM certificate"),
    "a login that kubectl 1.26 removed": (
        SERVER,
        {"auth-provider": {"name": "oidc"}},
        'user "me": auth-provider was removed from kubectl 1.26; write',
    ),
    "a token and a password": (SERVER, {"token": "t", "password": "p"}, "token and password, which exclude"),
    "groups without a user": (SERVER, {"as-groups": ["g"]}, "cannot act as another user: groups, .* add --as"),
    "a group that is no text": (SERVER, {"as": "u", "as-groups": [7]}, "as another user: Expected `str`"),
    "a user of two lines": (SERVER, {"as": "u\r\nX: y"}, "no line breaks"),
    "two logins": (SERVER, {"token": "t", "exec": {"command": "x"}}, "token and exec, which exclude each other"),
    "a program of an unknown version": (SERVER, {"exec": {"apiVersion": "v9"}}, "exec cannot be used: .*apiVersion"),
    "an authority that is not there": (SERVER | {"certificate-authority": "gone"}, {}, "gone: cannot be read"),
}


@pytest.mark.parametrize(("cluster", "user", "sentence"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_kubeconfig_that_cannot_be_used_says_why(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(AccessError, match=sentence):  # noqa: PT012  (some is read at the first connection)
        access = from_kubeconfig(kubeconfig(tmp_path, cluster, user))
        assert access.tls is not None
        access.tls()


KUBECTL_ONLY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "shape (a field that this version does not know": ({"shape": "round"}, {}),
}


@pytest.mark.parametrize(("cluster", "user"), KUBECTL_ONLY.values(), ids=KUBECTL_ONLY.keys())
def test_what_only_kubectl_understands_is_refused_with_a_way_out(
    tmp_path: Path, request: pytest.FixtureRequest, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    path = kubeconfig(tmp_path, SERVER | cluster, user)
    with pytest.raises(AccessError) as refused:
        from_kubeconfig(path, "here")
    entry = 'cluster "c"' if cluster else 'user "me"'
    assert str(refused.value).startswith(f"{path}: {entry}: has the field {request.node.callspec.id}")
    assert f"`kubectl proxy --port=8001 --kubeconfig={path} --context=here`" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_password_is_sent_as_kubectl_sends_it(tmp_path: Path) -> None:
    access = from_kubeconfig(kubeconfig(tmp_path, SERVER, {"username": "me", "password": "p:w"}))
    assert dict(access.headers())["Authorization"] == "Basic " + base64.b64encode(b"me:p:w").decode()


ACTING: dict[str, tuple[dict[str, Any], Impersonation, list[tuple[str, str]]]] = {
    "nobody else": ({}, Impersonation(), []),
    "the file's user": (
        {"as": "u", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"example.com/scopes": ["x", "y"]}},
        Impersonation(),
        [
            ("Impersonate-User", "u"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-example.com%2Fscopes", "x"),
            ("Impersonate-Extra-example.com%2Fscopes", "y"),
        ],
    ),
    "the options' user instead": (
        {"as": "u", "as-groups": ["a"]},
        Impersonation("v", groups=("c",)),
        [("Impersonate-User", "v"), ("Impersonate-Group", "c")],
    ),
    "the options' group with the file's user": (
        {"as": "u"},
        Impersonation(groups=("c",)),
        [("Impersonate-User", "u"), ("Impersonate-Group", "c")],
    ),
    "a name beyond ASCII, sent as UTF-8": ({"as": "ü"}, Impersonation(), [("Impersonate-User", "Ã¼")]),
}


@pytest.mark.parametrize(("user", "asked", "headers"), ACTING.values(), ids=ACTING.keys())
def test_requests_act_as_the_user_that_kubectl_acts_as(
    tmp_path: Path, user: dict[str, Any], asked: Impersonation, headers: list[tuple[str, str]]
) -> None:
    access = from_kubeconfigs([kubeconfig(tmp_path, SERVER, user)], impersonation=asked)
    assert access.headers()[2:] == headers


def test_the_first_of_several_files_counts_and_paths_are_beside_their_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "token").write_text(f"of {folder.name}")
    users = [{"name": "you", "user": {"token": "t"}}]
    content = {"users": users, "contexts": [{"name": "there", "context": {"cluster": "c", "user": "you"}}]}
    (one / "config").write_text(json.dumps(content))
    files = [one / "config", kubeconfig(two, SERVER, {"tokenFile": "token"})]
    assert dict(from_kubeconfigs(files).headers())["Authorization"] == "Bearer of two"
    assert dict(from_kubeconfigs(files, "there").headers())["Authorization"] == "Bearer t"
    with pytest.raises(AccessError, match=r'one/config, .*two/config: contexts has no "x", only there, here;'):
        from_kubeconfigs(files, "x")


def test_a_server_may_have_another_name_in_its_certificate(tmp_path: Path) -> None:
    access = from_kubeconfig(kubeconfig(tmp_path, SERVER | {"tls-server-name": "api"}, {}))
    assert (access.host, access.certified_name) == ("10.0.0.1", "api")


def test_empty_fields_are_not_there(tmp_path: Path) -> None:
    user: dict[str, Any] = {"as": "", "as-groups": [], "exec": None, "token": "t"}
    assert from_kubeconfig(kubeconfig(tmp_path, SERVER | {"proxy-url": ""}, user)).host == "10.0.0.1"


def test_kubectl_proxy_needs_no_kubeconfig() -> None:
    access = from_server("http://127.0.0.1:8001/k8s/")
    assert (access.host, access.port, access.prefix, access.tls) == ("127.0.0.1", 8001, "/k8s", None)


@pytest.mark.parametrize("url", ["https://127.0.0.1:6443", "127.0.0.1:8001", "", "http://"])
def test_an_address_that_is_not_of_kubectl_proxy_is_refused(url: str) -> None:
    with pytest.raises(AccessError, match=r"--server: got .*http://127\.0\.0\.1:8001"):
        from_server(url)


def test_a_certificate_and_a_key_that_are_no_pair_are_refused(tmp_path: Path, authority: ClusterAuthority) -> None:
    one, other = (authority.client(name, name=name, groups=[]) for name in ("one", "other"))
    user = {"client-certificate": str(one.certificate), "client-key": str(other.key)}
    access = from_kubeconfig(kubeconfig(tmp_path, SERVER, user))
    assert access.tls is not None
    with pytest.raises(AccessError, match="are no pair"):
        access.tls()


def test_a_context_without_its_cluster_is_refused_by_name(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, SERVER, {})
    with pytest.raises(AccessError, match='clusters has no "nowhere"'):
        from_kubeconfig(path, "there")
    with pytest.raises(AccessError, match='contexts has no "else", only there, here;'):
        from_kubeconfig(path, "else")


@pytest.mark.parametrize(
    ("text", "sentence"), [("a: [", "config:[12]: "), ("- a", "no kubeconfig"), ("", "no kubeconfig")]
)
def test_a_file_that_is_no_kubeconfig_is_refused_by_name(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(AccessError, match=sentence):
        from_kubeconfig(tmp_path / "config")


ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_pod_uses_its_service_account(tmp_path: Path, authority: ClusterAuthority) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    (tmp_path / "token").write_text("one")
    access = from_service_account(tmp_path, ENVIRON)
    assert (access.host, access.port) == ("10.96.0.1", 443)
    assert dict(access.headers())["Authorization"] == "Bearer one"
    assert access.tls is not None
    assert len(access.tls().get_ca_certs()) == 1


def test_outside_a_pod_the_error_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="name a kubeconfig instead"):
        from_service_account(tmp_path, {})
    with pytest.raises(AccessError, match="automountServiceAccountToken"):
        from_service_account(tmp_path, ENVIRON)
