"""The alerts that helm renders: none waits for a process that is not installed."""

from __future__ import annotations

from typing import Final

import pytest

from .test_chart import of_kind

KEEPERS: Final = {"HalfcardCertificatesUnkept", "HalfcardCertificateEnds", "HalfcardCertificateWaits"}


def alerts(keeper: str) -> dict[str, str]:
    """The expressions by name."""
    (rendered,) = of_kind({"monitoring": {"rules": True}, "certificates": {"from": keeper}}, "PrometheusRule")
    return {rule["alert"]: rule["expr"] for group in rendered["spec"]["groups"] for rule in group["rules"]}


def test_the_keeper_is_missed_only_where_it_is_installed() -> None:
    ours, theirs = alerts("halfcard"), alerts("cert-manager")
    assert ours.keys() - theirs.keys() == KEEPERS
    assert theirs.keys() < ours.keys()
    assert [name for name, asked in theirs.items() if "halfcard_certs_" in asked] == []


@pytest.mark.parametrize("keeper", ["halfcard", "cert-manager"])
def test_a_certificate_that_is_shown_is_watched_whoever_keeps_it(keeper: str) -> None:
    assert "halfcard_served_certificate_days_left" in alerts(keeper)["HalfcardServedCertificateEnds"]
