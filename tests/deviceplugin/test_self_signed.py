from __future__ import annotations

import ssl
from datetime import UTC, datetime

import pytest
from cryptography import x509

import deviceplugin.self_signed
from deviceplugin.self_signed import self_signed
from serving.errors import CannotServeError
from tests.serving.conversation import Echo, server


def anyone() -> ssl.SSLContext:
    """As kubelet's probes, the API server's proxy and Prometheus are configured: they do not ask who answers."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_a_client_that_trusts_every_certificate_is_served_with_tls_1_3() -> None:
    now = datetime.now(UTC)
    async with server(Echo(), tls=await self_signed("gpu-1")) as running:
        client = await running.connect(anyone())
        assert (await client.ask()).status == 200
        found = client.writer.get_extra_info("ssl_object")
        certificate = x509.load_der_x509_certificate(found.getpeercert(binary_form=True))
        assert found.version() == "TLSv1.3"
        assert certificate.not_valid_before_utc < now and (certificate.not_valid_after_utc - now).days > 3000


async def test_each_start_has_another_key_and_a_long_node_name_has_a_certificate_too() -> None:
    serials = set()
    for _ in range(2):
        async with server(Echo(), tls=await self_signed("n" * 253)) as running:
            serials.add((await running.connect(anyone())).served_serial())
    assert len(serials) == 2


async def test_an_issuer_that_fails_is_named_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deviceplugin.self_signed, "_ISSUER", "deviceplugin.missing")
    with pytest.raises(CannotServeError, match=r"deviceplugin.missing gpu-1: .*No module named"):
        await self_signed("gpu-1")
