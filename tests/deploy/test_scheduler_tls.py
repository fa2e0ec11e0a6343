"""Wherever a scheduler that we ship calls by HTTPS, it verifies whom it calls and shows who it is."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml

from .rendered import DEPLOY

EXTENDERS: Final[dict[str, dict[str, Any]]] = {
    file.name: extender
    for file in sorted((DEPLOY / "scheduler").glob("*.yaml"))
    for extender in yaml.safe_load(file.read_text())["extenders"]
}
ENCRYPTED: Final = [name for name, each in EXTENDERS.items() if each["enableHTTPS"]]


def test_the_recommended_one_calls_by_https() -> None:
    assert "halfcard.yaml" in ENCRYPTED


@pytest.mark.parametrize("name", ENCRYPTED)
def test_a_call_by_https_names_ca_and_client_certificate(name: str) -> None:
    """Without caFile kube-scheduler believes any certificate; without a pair it may not bind."""
    tls = EXTENDERS[name]["tlsConfig"]
    assert EXTENDERS[name]["urlPrefix"].startswith("https://")
    assert all(tls[key] for key in ("caFile", "certFile", "keyFile", "serverName"))
    assert not tls.get("insecure")


@pytest.mark.parametrize("name", sorted(EXTENDERS.keys() - ENCRYPTED))
def test_a_call_without_tls_stays_on_its_machine(name: str) -> None:
    assert EXTENDERS[name]["urlPrefix"].startswith("http://127.0.0.1:")
