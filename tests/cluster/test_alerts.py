"""The alerts that helm renders: none uses metrics of a process that is not installed."""

from __future__ import annotations

from typing import Any, Final

import pytest

from .test_chart import of_kind

CONTROLLER_ALERTS: Final = {
    "HalfcardCertificateControllerDown",
    "HalfcardCertificateExpires",
    "HalfcardCertificateNeedsAction",
}


def rules(issuer: str, **monitoring: str) -> list[dict[str, Any]]:
    values = {"monitoring": {"rules": True, **monitoring}, "certificates": {"from": issuer}}
    (rendered,) = of_kind(values, "PrometheusRule")
    return [rule for group in rendered["spec"]["groups"] for rule in group["rules"]]


def alerts(issuer: str) -> dict[str, str]:
    """Returns the expressions of the alerts, by name."""
    return {rule["alert"]: rule["expr"] for rule in rules(issuer)}


def test_alerts_about_the_certificate_controller_exist_only_where_it_is_installed() -> None:
    with_controller, with_cert_manager = alerts("halfcard"), alerts("cert-manager")
    assert with_controller.keys() - with_cert_manager.keys() == CONTROLLER_ALERTS
    assert with_cert_manager.keys() < with_controller.keys()
    assert [name for name, expression in with_cert_manager.items() if "halfcard_certs_" in expression] == []


@pytest.mark.parametrize("issuer", ["halfcard", "cert-manager"])
def test_served_certificates_are_watched_with_every_issuer(issuer: str) -> None:
    assert "halfcard_served_certificate_days_left" in alerts(issuer)["HalfcardServedCertificateExpires"]


@pytest.mark.parametrize("issuer", ["halfcard", "cert-manager"])
def test_alerts_link_to_the_address_of_the_runbooks(issuer: str) -> None:
    for rule in rules(issuer, runbooks="https://docs.example.com/runbooks/"):
        assert rule["annotations"]["runbook_url"] == f"https://docs.example.com/runbooks/#{rule['alert'].lower()}"
