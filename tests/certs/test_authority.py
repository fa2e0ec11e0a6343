from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import make_authority, make_leaf
from certs.certificate_checks import CLIENT, SERVER
from certs.lifetimes import LONG_AUTHORITY_LIFE, ChainRules, LeafRules
from certs.server_names import server_names

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = server_names(["halfcard.svc", "10.0.0.7"])
RULES = LeafRules(NAMES)
AUTHORITY = make_authority(ChainRules((RULES,)), now=NOW)
LEAF = make_leaf(AUTHORITY, RULES, now=NOW)
CA_CERTIFICATE = x509.load_pem_x509_certificate(AUTHORITY.certificate)
LEAF_CERTIFICATE = x509.load_pem_x509_certificate(LEAF.certificate)


def test_both_are_valid_from_an_hour_ago_and_the_leaf_ends_first() -> None:
    assert CA_CERTIFICATE.not_valid_before_utc == LEAF_CERTIFICATE.not_valid_before_utc == NOW - timedelta(hours=1)
    assert LEAF_CERTIFICATE.not_valid_after_utc == NOW + timedelta(days=90)
    assert CA_CERTIFICATE.not_valid_after_utc == NOW + timedelta(days=3650)


def test_the_ca_may_sign_leaves_and_nothing_below_them() -> None:
    constraints = CA_CERTIFICATE.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = CA_CERTIFICATE.extensions.get_extension_for_class(x509.KeyUsage)

    assert constraints.critical and constraints.value == x509.BasicConstraints(ca=True, path_length=0)
    assert usage.critical and usage.value.key_cert_sign and not usage.value.digital_signature


def test_the_leaf_may_be_a_server_and_nothing_else() -> None:
    constraints = LEAF_CERTIFICATE.extensions.get_extension_for_class(x509.BasicConstraints).value
    usage = LEAF_CERTIFICATE.extensions.get_extension_for_class(x509.KeyUsage).value
    purposes = LEAF_CERTIFICATE.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value

    assert not constraints.ca
    assert usage.digital_signature and not usage.key_cert_sign
    assert list(purposes) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_a_leaf_may_be_for_both_sides() -> None:
    made = x509.load_pem_x509_certificate(make_leaf(AUTHORITY, LeafRules(NAMES, SERVER | CLIENT), now=NOW).certificate)

    assert {*made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value} == SERVER | CLIENT


def test_a_long_lived_ca_is_valid_three_times_as_long_and_its_leaves_end_with_it() -> None:
    made = make_authority(ChainRules((RULES,), is_long_lived=True), now=NOW)
    end = x509.load_pem_x509_certificate(made.certificate).not_valid_after_utc

    assert end == NOW + LONG_AUTHORITY_LIFE
    leaf = make_leaf(made, RULES, now=end - timedelta(days=10))
    assert x509.load_pem_x509_certificate(leaf.certificate).not_valid_after_utc == end


def test_the_leaf_has_dns_names_and_ip_addresses() -> None:
    found = LEAF_CERTIFICATE.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert {*found.get_values_for_type(x509.DNSName), *found.get_values_for_type(x509.IPAddress)} == NAMES


def test_the_leaf_names_the_key_that_signed_it() -> None:
    signer = CA_CERTIFICATE.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    named = LEAF_CERTIFICATE.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value

    assert named.key_identifier == signer.key_identifier
    LEAF_CERTIFICATE.verify_directly_issued_by(CA_CERTIFICATE)


def test_keys_are_p256_and_never_shared() -> None:
    keys = [load_pem_private_key(pair.key, password=None) for pair in (AUTHORITY, LEAF)]

    assert [isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name for key in keys] == ["secp256r1"] * 2
    assert AUTHORITY.key != LEAF.key


def test_serials_are_random_and_of_128_bits() -> None:
    leaves = [make_leaf(AUTHORITY, RULES, now=NOW) for _ in range(20)]
    serials = {x509.load_pem_x509_certificate(leaf.certificate).serial_number for leaf in leaves}

    assert len(serials) == 20
    assert 120 < max(serial.bit_length() for serial in serials) <= 128
