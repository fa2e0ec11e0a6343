from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from certs.authority import KeyPair, make_authority, make_leaf
from certs.plan import (
    AUTHORITY_LIFE,
    BACKDATED,
    LEAF_LIFE,
    RETIREMENT,
    Create,
    Held,
    Keep,
    Plan,
    Refuse,
    RenewAuthority,
    RenewLeaf,
    RetireAuthority,
    plan,
)
from certs.server_names import server_names
from tests.certs.handshakes import foreign_certificate

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NAMES = server_names(["halfcard.svc", "127.0.0.1"])

CA = make_authority(now=NOW)
OTHER_CA = make_authority(now=NOW)
LEAF = make_leaf(CA, names=NAMES, now=NOW)
OTHER_LEAF = make_leaf(OTHER_CA, names=NAMES, now=NOW)


def held(authority: KeyPair, leaf: KeyPair, *, older: bytes = b"") -> Held:
    return Held(authority.certificate + older, authority.key, leaf.certificate, leaf.key)


GOOD = held(CA, LEAF)
LEAF_DUE = NOW - BACKDATED + (LEAF_LIFE + BACKDATED) * 2 / 3
LATE = NOW - BACKDATED + (AUTHORITY_LIFE + BACKDATED) * 2 / 3
GOOD_BUT_OLD_CA = held(CA, make_leaf(CA, names=NAMES, now=LATE))
NEARLY_OVER = NOW + AUTHORITY_LIFE - LEAF_LIFE + SECOND


def with_a_damaged_signature(certificate: bytes) -> bytes:
    der = x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER)
    damaged = der[:-1] + bytes([der[-1] ^ 1])
    return x509.load_der_x509_certificate(damaged).public_bytes(Encoding.PEM)


@dataclass(frozen=True)
class Row:
    held: Held
    want: type[Plan]
    reason: str
    now: datetime = NOW


ROWS = {
    "all is well": Row(GOOD, Keep, "valid until 2026-05-30"),
    "all is well until the last second before two thirds": Row(GOOD, Keep, "valid until", LEAF_DUE - SECOND),
    "the first start": Row(Held(), Create, "ca.crt is missing"),
    "only the CA is lost": Row(replace(GOOD, ca_crt=None), Create, "ca.crt is missing"),
    "an empty CA file, as a power cut leaves": Row(replace(GOOD, ca_crt=b""), Create, "ca.crt holds no certificate"),
    "garbage for a CA": Row(replace(GOOD, ca_crt=b"\x00garbage"), Create, "ca.crt holds no certificate"),
    "a leaf where the CA should be": Row(replace(GOOD, ca_crt=LEAF.certificate), Create, "may not sign others"),
    "a CA with a flipped bit": Row(
        replace(GOOD, ca_crt=with_a_damaged_signature(CA.certificate)), Create, "its own signature does not fit"
    ),
    "an expired CA": Row(GOOD, Create, "the CA expired at 2036-02-27", NOW + AUTHORITY_LIFE),
    "a clock from before the CA": Row(GOOD, Create, "valid only from", NOW - BACKDATED - SECOND),
    "the CA's key is lost": Row(replace(GOOD, ca_key=None), RenewAuthority, "ca.key is missing"),
    "garbage for the CA's key": Row(replace(GOOD, ca_key=b"-"), RenewAuthority, "ca.key holds no private key"),
    "a certificate for the CA's key": Row(
        replace(GOOD, ca_key=CA.certificate), RenewAuthority, "ca.key holds no private key"
    ),
    "another CA's key, as a crash leaves": Row(
        replace(GOOD, ca_key=OTHER_CA.key), RenewAuthority, "ca.key does not belong to ca.crt"
    ),
    "a CA past two thirds": Row(GOOD_BUT_OLD_CA, RenewAuthority, "two thirds of the life of the CA", LATE),
    "a CA that a new leaf would outlive": Row(GOOD, RenewAuthority, "before a new leaf would", NEARLY_OVER),
    "no leaf yet": Row(replace(GOOD, tls_crt=None), RenewLeaf, "tls.crt is missing"),
    "garbage for a leaf": Row(replace(GOOD, tls_crt=b"?"), RenewLeaf, "tls.crt holds no certificate"),
    "the leaf's key is lost": Row(replace(GOOD, tls_key=None), RenewLeaf, "tls.key is missing"),
    "garbage for the leaf's key": Row(replace(GOOD, tls_key=b"?"), RenewLeaf, "tls.key holds no private key"),
    "another leaf's key, as a crash leaves": Row(
        replace(GOOD, tls_key=OTHER_LEAF.key), RenewLeaf, "tls.key does not belong to tls.crt"
    ),
    "an expired leaf": Row(GOOD, RenewLeaf, "the leaf expired at 2026-05-30", NOW + LEAF_LIFE),
    "a leaf past two thirds": Row(GOOD, RenewLeaf, "two thirds of the life of the leaf", LEAF_DUE),
    "another CA's leaf": Row(held(CA, OTHER_LEAF), RenewLeaf, "not signed by a CA in ca.crt"),
    "a leaf due before its CA goes first": Row(GOOD, RenewLeaf, "the leaf expired", LATE),
    "a leaf of the CA before stays": Row(
        held(OTHER_CA, LEAF, older=CA.certificate), Keep, "valid until", NOW + RETIREMENT
    ),
    "the CA before stays while others may show its leaf": Row(
        held(CA, LEAF, older=OTHER_CA.certificate), Keep, "valid until", NOW + RETIREMENT - SECOND
    ),
    "the CA before goes": Row(
        held(CA, LEAF, older=OTHER_CA.certificate),
        RetireAuthority,
        "no leaf of an older CA",
        NOW + RETIREMENT,
    ),
    "somebody else's leaf": Row(
        replace(GOOD, tls_crt=foreign_certificate()), Refuse, "tls.crt was not issued by Halfcard"
    ),
    "somebody else's CA": Row(replace(GOOD, ca_crt=foreign_certificate()), Refuse, "ca.crt was not issued by Halfcard"),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_each_state_has_its_step_and_its_reason(row: Row) -> None:
    got = plan(row.held, NAMES, row.now)

    assert isinstance(got, row.want)
    assert row.reason in got.reason


@pytest.mark.parametrize(
    "wanted", [["halfcard.svc"], ["halfcard.svc", "127.0.0.2"], ["halfcard.svc", "127.0.0.1", "more.svc"]]
)
def test_other_names_than_wanted_renew_the_leaf_and_both_are_named(wanted: list[str]) -> None:
    got = plan(GOOD, server_names(wanted), NOW)

    assert isinstance(got, RenewLeaf)
    assert got.reason == f"the leaf answers for 127.0.0.1, halfcard.svc; wanted {', '.join(sorted(wanted))}"


def test_a_new_ca_keeps_trust_in_the_one_that_signed_the_leaf_and_in_no_other() -> None:
    step = plan(held(OTHER_CA, LEAF, older=CA.certificate), NAMES, NOW)
    assert isinstance(step, Keep)

    step = plan(replace(held(OTHER_CA, LEAF, older=CA.certificate), ca_key=None), NAMES, NOW)
    assert isinstance(step, RenewAuthority)
    assert step.still_trusted == (CA.certificate,)


def test_retiring_leaves_the_present_ca_alone() -> None:
    step = plan(held(CA, LEAF, older=OTHER_CA.certificate), NAMES, NOW + RETIREMENT)

    assert isinstance(step, RetireAuthority)
    assert step.still_trusted == (CA.certificate,)


@given(
    file=st.sampled_from(["ca_crt", "ca_key", "tls_crt", "tls_key"]),
    at=st.floats(min_value=0, max_value=1, exclude_max=True),
    flipped=st.integers(min_value=1, max_value=255),
)
def test_a_damaged_byte_never_breaks_the_decision(file: str, at: float, flipped: int) -> None:
    good: bytes = getattr(GOOD, file)
    damaged = bytearray(good)
    damaged[int(at * len(good))] ^= flipped

    step = plan(replace(GOOD, **{file: bytes(damaged)}), NAMES, NOW)

    assert step.reason


@given(file=st.sampled_from(["ca_crt", "ca_key", "tls_crt", "tls_key"]), contents=st.binary(max_size=200))
def test_arbitrary_bytes_in_a_file_are_repaired(file: str, contents: bytes) -> None:
    step = plan(replace(GOOD, **{file: contents}), NAMES, NOW)

    assert isinstance(step, Create | RenewAuthority | RenewLeaf)
