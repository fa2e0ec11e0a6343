from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from certs.authority import KeyPair, make_authority, make_leaf
from certs.certificate_checks import BACKDATED, CLIENT, ORGANIZATION, SERVER, Uses
from certs.lifetimes import (
    AUTHORITY_LIFE,
    COPIED_LEAF_LIFE,
    KNOWN_AFTER,
    LAST_CALL,
    LEAF_LIFE,
    LONG_AUTHORITY_LIFE,
    RETIREMENT,
    ChainRules,
    LeafRules,
    folder_rules,
)
from certs.plan import plan
from certs.server_names import server_names
from certs.steps import (
    ChainContents,
    Keep,
    Note,
    Plan,
    Publish,
    Refuse,
    RenewAuthority,
    RenewLeaf,
    StoredLeaf,
    Trust,
)
from tests.certs.handshakes import foreign_certificate

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NAMES = server_names(["halfcard.svc", "127.0.0.1"])
FOLDER = folder_rules(NAMES)
SECRETS = ChainRules((LeafRules(NAMES),))
LASTING = ChainRules((LeafRules(NAMES, outlives_ca=True),), is_long_lived=True)

CA = make_authority(FOLDER, now=NOW)
OTHER_CA = make_authority(FOLDER, now=NOW)
OLD_CA = make_authority(LASTING, now=NOW)


COPIED = ChainRules((LeafRules(NAMES, life=COPIED_LEAF_LIFE),), is_long_lived=True)


def leaf_of(authority: KeyPair, *, now: datetime = NOW, uses: Uses = SERVER, life: timedelta = LEAF_LIFE) -> KeyPair:
    return make_leaf(authority, LeafRules(NAMES, uses, life=life), now=now)


LEAF = leaf_of(CA)
OTHER_LEAF = leaf_of(OTHER_CA)


def held(authority: KeyPair, leaf: KeyPair, *, older: bytes = b"") -> ChainContents:
    return ChainContents(authority.certificate + older, authority.key, (StoredLeaf(leaf.certificate, leaf.key),))


def with_leaf(state: ChainContents, **changes: Any) -> ChainContents:
    return replace(state, leaves=(replace(state.leaves[0], **changes),))


GOOD = held(CA, LEAF)
LEAF_DUE = NOW - BACKDATED + (LEAF_LIFE + BACKDATED) * 2 / 3
LATE = NOW - BACKDATED + (AUTHORITY_LIFE + BACKDATED) * 2 / 3
GOOD_BUT_OLD_CA = held(CA, leaf_of(CA, now=LATE))
NEARLY_OVER = NOW + AUTHORITY_LIFE - LEAF_LIFE + SECOND


def with_a_damaged_signature(certificate: bytes) -> bytes:
    der = x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER)
    damaged = der[:-1] + bytes([der[-1] ^ 1])
    return x509.load_der_x509_certificate(damaged).public_bytes(Encoding.PEM)


def by_hand() -> KeyPair:
    """A CA in our name, as somebody made it with another tool."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, ORGANIZATION)])
    draft = x509.CertificateBuilder(name, name, key.public_key(), 7, NOW, NOW + AUTHORITY_LIFE)
    made = draft.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(made.public_bytes(Encoding.PEM), private)


@dataclass(frozen=True)
class Row:
    held: ChainContents
    want: type[Plan]
    reason: str
    now: datetime = NOW
    rules: ChainRules = FOLDER


FOLDERS = {
    "all is well": Row(GOOD, Keep, "valid until 2026-05-30"),
    "all is well until the last second before two thirds": Row(GOOD, Keep, "valid until", LEAF_DUE - SECOND),
    "the first start": Row(ChainContents(leaves=(StoredLeaf(),)), RenewAuthority, "ca.crt is missing"),
    "only the CA is lost": Row(replace(GOOD, ca_crt=None), RenewAuthority, "ca.crt is missing"),
    "an empty CA file, as a power cut leaves": Row(
        replace(GOOD, ca_crt=b""), RenewAuthority, "ca.crt contains no certificate"
    ),
    "garbage for a CA": Row(replace(GOOD, ca_crt=b"\x00garbage"), RenewAuthority, "ca.crt contains no certificate"),
    "a leaf where the CA should be": Row(replace(GOOD, ca_crt=LEAF.certificate), RenewAuthority, "may not sign others"),
    "a CA with a flipped bit": Row(
        replace(GOOD, ca_crt=with_a_damaged_signature(CA.certificate)), RenewAuthority, "its signature is invalid"
    ),
    "an expired CA": Row(GOOD, RenewAuthority, "the CA expired at 2036-02-27", NOW + AUTHORITY_LIFE),
    "a clock from before the CA": Row(GOOD, RenewAuthority, "valid only from", NOW - BACKDATED - SECOND),
    "the CA's key is lost": Row(replace(GOOD, ca_key=None), RenewAuthority, "ca.key is missing"),
    "garbage for the CA's key": Row(replace(GOOD, ca_key=b"-"), RenewAuthority, "ca.key contains no private key"),
    "a certificate for the CA's key": Row(
        replace(GOOD, ca_key=CA.certificate), RenewAuthority, "ca.key contains no private key"
    ),
    "another CA's key, as a crash leaves": Row(
        replace(GOOD, ca_key=OTHER_CA.key), RenewAuthority, "ca.key does not belong to ca.crt"
    ),
    "a CA that we could not sign with": Row(held(by_hand(), LEAF), RenewAuthority, "no elliptic curve key"),
    "a CA past two thirds": Row(GOOD_BUT_OLD_CA, RenewAuthority, "two thirds of the life of the CA", LATE),
    "a CA that a new leaf would outlive": Row(GOOD, RenewAuthority, "before a new leaf would", NEARLY_OVER),
    "no leaf yet": Row(replace(GOOD, leaves=(StoredLeaf(),)), RenewLeaf, "tls.crt is missing"),
    "garbage for a leaf": Row(with_leaf(GOOD, crt=b"?"), RenewLeaf, "tls.crt contains no certificate"),
    "the leaf's key is lost": Row(with_leaf(GOOD, key=None), RenewLeaf, "tls.key is missing"),
    "garbage for the leaf's key": Row(with_leaf(GOOD, key=b"?"), RenewLeaf, "tls.key contains no private key"),
    "another leaf's key, as a crash leaves": Row(
        with_leaf(GOOD, key=OTHER_LEAF.key), RenewLeaf, "tls.key does not belong to tls.crt"
    ),
    "an expired leaf": Row(GOOD, RenewLeaf, "the leaf expired at 2026-05-30", NOW + LEAF_LIFE),
    "a leaf past two thirds": Row(GOOD, RenewLeaf, "two thirds of the life of the leaf", LEAF_DUE),
    "another CA's leaf": Row(held(CA, OTHER_LEAF), RenewLeaf, "not signed by a CA in ca.crt"),
    "a leaf for other uses": Row(held(CA, leaf_of(CA, uses=CLIENT)), RenewLeaf, "for other uses than wanted"),
    "a leaf due before its CA goes first": Row(GOOD, RenewLeaf, "the leaf expired", LATE),
    "a leaf of the CA before stays": Row(
        held(OTHER_CA, LEAF, older=CA.certificate), Keep, "valid until", NOW + LEAF_LIFE - LAST_CALL - SECOND
    ),
    "a leaf of the CA before goes while it is still good": Row(
        held(OTHER_CA, LEAF, older=CA.certificate), RenewLeaf, "its CA was replaced", NOW + LEAF_LIFE - LAST_CALL
    ),
    "the CA before stays while others may show its leaf": Row(
        held(CA, LEAF, older=OTHER_CA.certificate), Keep, "trusted until", NOW + RETIREMENT - SECOND
    ),
    "the CA before goes": Row(
        held(CA, LEAF, older=OTHER_CA.certificate), Trust, "no leaf of an older CA", NOW + RETIREMENT
    ),
    "somebody else's leaf": Row(with_leaf(GOOD, crt=foreign_certificate()), Refuse, "tls.crt was not issued by"),
    "somebody else's CA": Row(replace(GOOD, ca_crt=foreign_certificate()), Refuse, "ca.crt was not issued by Halfcard"),
}

TRUSTED = (CA.certificate,)
CHANGING = replace(
    held(OTHER_CA, LEAF, older=CA.certificate),
    copies=((OTHER_CA.certificate + CA.certificate,),),
    known_since=NOW,
)
KNOWN = NOW + KNOWN_AFTER
SINGLE = replace(GOOD, copies=(TRUSTED,))
COPIES = {
    "all is well": Row(SINGLE, Keep, "valid until"),
    "a blank copy": Row(replace(SINGLE, copies=(TRUSTED, (b"",))), Publish, "the bundle is empty there"),
    "one blank webhook among many": Row(
        replace(SINGLE, copies=((CA.certificate, b""),)), Publish, "the bundle is empty there"
    ),
    "a copy with another CA": Row(
        replace(SINGLE, copies=((OTHER_CA.certificate,),)), Publish, "the current CA is missing there"
    ),
    "a copy with one CA too many": Row(
        replace(SINGLE, copies=((CA.certificate + OTHER_CA.certificate,),)), Publish, "other CAs of Halfcard"
    ),
    "a copy that is not managed": Row(replace(SINGLE, copies=((),)), Keep, "valid until"),
    "a new CA, not in the copies yet": Row(
        replace(CHANGING, copies=(TRUSTED,), known_since=None), Publish, "the current CA is missing there"
    ),
    "a new CA, in all copies": Row(replace(CHANGING, known_since=None), Note, "all copies of the bundle have"),
    "a new CA, not surely seen": Row(CHANGING, Keep, "leaves follow at 2026-03-01T12:05:00Z", KNOWN - SECOND),
    "a new CA, surely seen": Row(CHANGING, RenewLeaf, "signed by a CA that was replaced", KNOWN),
    "a new CA that a copy has lost again": Row(
        replace(CHANGING, copies=(TRUSTED,)), Note, "every verifier has to read it again", KNOWN
    ),
    "a broken leaf while a new CA is not surely seen: replicas have the one before in memory": Row(
        with_leaf(CHANGING, crt=b"?"), Keep, "leaves follow", KNOWN - SECOND
    ),
    "an expired leaf while a new CA is not surely seen: nobody can accept it": Row(
        replace(CHANGING, known_since=NOW + LEAF_LIFE), RenewLeaf, "expired", NOW + LEAF_LIFE
    ),
    "a broken leaf while the only CA is in all copies": Row(with_leaf(SINGLE, crt=b"?"), RenewLeaf, "no certificate"),
    "the CA is lost, and API servers trust it": Row(
        replace(SINGLE, ca_crt=None, elsewhere=CA.certificate), RenewAuthority, "ca.crt is missing"
    ),
    "a CA of before was put back, and API servers trust that of the leaf": Row(
        replace(held(OTHER_CA, LEAF), copies=(TRUSTED,), elsewhere=CA.certificate), Trust, "not in ca.crt"
    ),
    "a new leaf is requested": Row(
        with_leaf(SINGLE, asked=NOW + SECOND), RenewLeaf, "a new leaf is requested", NOW + SECOND
    ),
    "a new leaf was asked for, and is there": Row(with_leaf(SINGLE, asked=NOW), Keep, "valid until", NOW + SECOND),
    "a new leaf is requested by a clock ahead": Row(with_leaf(SINGLE, asked=NOW + SECOND), Keep, "valid until", NOW),
    "a new CA is requested": Row(
        replace(SINGLE, asked=NOW + SECOND), RenewAuthority, "a new CA is requested", NOW + SECOND
    ),
    "a new CA was asked for, and is there": Row(replace(SINGLE, asked=NOW), Keep, "valid until", NOW + SECOND),
    "no copy at all: nobody is left who trusts": Row(replace(GOOD, copies=()), Keep, "valid until"),
}

OLD = replace(held(OLD_CA, leaf_of(OLD_CA, now=NOW + 2 * AUTHORITY_LIFE + LEAF_LIFE)), copies=())
LASTINGS = {
    "a lasting CA is not replaced for its age": Row(
        OLD, Keep, "two thirds of the life of the CA", NOW + 2 * AUTHORITY_LIFE + LEAF_LIFE
    ),
    "nor when a leaf would outlive it: that leaf ends with it": Row(
        held(OLD_CA, leaf_of(OLD_CA, now=NOW + LONG_AUTHORITY_LIFE - SECOND)),
        Keep,
        "of the CA",
        NOW + LONG_AUTHORITY_LIFE - SECOND,
    ),
    "but when it has expired": Row(OLD, RenewAuthority, "expired", NOW + LONG_AUTHORITY_LIFE),
    "a leaf stays when its CA was replaced": Row(
        CHANGING, Keep, "must give the new CA to its clients", NOW + LEAF_LIFE - LAST_CALL - SECOND
    ),
    "until a new one is requested": Row(with_leaf(CHANGING, asked=KNOWN), RenewLeaf, "a new leaf is requested", KNOWN),
    "which waits until the new CA is known": Row(with_leaf(CHANGING, asked=NOW + SECOND), Keep, "", KNOWN - SECOND),
}

COPIED_LEAF = leaf_of(OLD_CA, life=COPIED_LEAF_LIFE)
COPIED_DUE = NOW - BACKDATED + (COPIED_LEAF_LIFE + BACKDATED) * 2 / 3
LATE_FOR_COPIES = NOW + LONG_AUTHORITY_LIFE - timedelta(days=1000)
COPIED_LEAVES = {
    "one of 90 days, by an earlier version, is replaced": Row(
        held(OLD_CA, leaf_of(OLD_CA)), RenewLeaf, "the leaf is valid for 90 days; wanted 3650"
    ),
    "one of ten years stays": Row(held(OLD_CA, COPIED_LEAF), Keep, "valid until 2036-02-27", COPIED_DUE - SECOND),
    "for two thirds of its life": Row(held(OLD_CA, COPIED_LEAF), RenewLeaf, "two thirds of the life", COPIED_DUE),
    "one that ends with its CA is not replaced by another one like it": Row(
        held(OLD_CA, leaf_of(OLD_CA, now=LATE_FOR_COPIES, life=COPIED_LEAF_LIFE)), Keep, "", LATE_FOR_COPIES
    ),
    "one that a CA with a short life would not outlive": Row(
        held(CA, leaf_of(CA)), RenewAuthority, "before a new leaf would", NOW + SECOND, ChainRules(COPIED.leaves)
    ),
}

ROWS = {
    **FOLDERS,
    **{f"copies: {name}": replace(row, rules=SECRETS) for name, row in COPIES.items()},
    **{f"lasting: {name}": replace(row, rules=LASTING) for name, row in LASTINGS.items()},
    **{
        f"copied: {name}": row if row.rules is not FOLDER else replace(row, rules=COPIED)
        for name, row in COPIED_LEAVES.items()
    },
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_each_state_has_its_step_and_its_reason(row: Row) -> None:
    got = plan(row.held, row.rules, row.now)

    assert isinstance(got, row.want)
    assert row.reason in got.reason


@pytest.mark.parametrize("name", ["a lasting CA is not replaced for its age", "a leaf stays when its CA was replaced"])
def test_a_step_for_an_administrator_needs_action(name: str) -> None:
    row = LASTINGS[name]

    assert plan(row.held, LASTING, row.now) == Keep(plan(row.held, LASTING, row.now).reason, needs_action=True)
    assert plan(SINGLE, SECRETS, NOW) == Keep("valid until 2026-05-30T12:00:00Z")


@pytest.mark.parametrize(
    "wanted", [["halfcard.svc"], ["halfcard.svc", "127.0.0.2"], ["halfcard.svc", "127.0.0.1", "more.svc"]]
)
def test_a_leaf_with_other_names_is_renewed_and_the_reason_has_both(wanted: list[str]) -> None:
    got = plan(GOOD, folder_rules(server_names(wanted)), NOW)

    assert isinstance(got, RenewLeaf)
    assert got.reason == f"the leaf answers for 127.0.0.1, halfcard.svc; wanted {', '.join(sorted(wanted))}"


def still_trusted(state: ChainContents, now: datetime = NOW) -> list[bytes]:
    step = plan(state, SECRETS, now)
    assert isinstance(step, RenewAuthority)
    return [each.public_bytes(Encoding.PEM) for each in step.still_trusted]


def test_a_new_ca_keeps_trust_in_all_earlier_ones_that_have_not_expired() -> None:
    """A replica may still show a leaf that was replaced or lost a moment ago."""
    state = replace(held(OTHER_CA, LEAF, older=CA.certificate), ca_key=None)

    assert still_trusted(state) == [OTHER_CA.certificate, CA.certificate]
    assert still_trusted(state, NOW + AUTHORITY_LIFE) == []


def test_a_new_ca_drops_damaged_certificates_and_those_that_cannot_sign() -> None:
    assert still_trusted(replace(GOOD, ca_crt=with_a_damaged_signature(CA.certificate))) == []
    assert still_trusted(replace(GOOD, ca_crt=LEAF.certificate)) == []


def test_a_lost_bundle_is_restored_from_the_cas_that_api_servers_trust() -> None:
    elsewhere = CA.certificate * 2 + foreign_certificate() + LEAF.certificate

    assert still_trusted(replace(GOOD, ca_crt=None, elsewhere=elsewhere)) == [CA.certificate]


def test_a_restored_ca_comes_with_all_other_trusted_ones() -> None:
    """A Secret was written over just after a change: replicas still show the leaf before the one that is held."""
    elsewhere = CA.certificate + OLD_CA.certificate + foreign_certificate()
    step = plan(replace(held(OTHER_CA, LEAF), copies=(TRUSTED,), elsewhere=elsewhere), SECRETS, NOW)

    assert isinstance(step, Trust)
    wanted = [OTHER_CA.certificate, CA.certificate, OLD_CA.certificate]
    assert [each.public_bytes(Encoding.PEM) for each in step.authorities] == wanted


def test_retirement_keeps_the_current_ca() -> None:
    step = plan(held(CA, LEAF, older=OTHER_CA.certificate), FOLDER, NOW + RETIREMENT)

    assert isinstance(step, Trust)
    assert [each.public_bytes(Encoding.PEM) for each in step.authorities] == [CA.certificate]


def test_no_ca_is_retired_before_every_leaf_has_followed() -> None:
    rules = ChainRules((LeafRules(NAMES), LeafRules(NAMES, outlives_ca=True)))
    state = replace(CHANGING, leaves=(StoredLeaf(OTHER_LEAF.certificate, OTHER_LEAF.key), *CHANGING.leaves))

    assert isinstance(plan(state, rules, NOW + RETIREMENT), Keep)


def damaged(file: str, contents: bytes) -> ChainContents:
    changes: Any = {file: contents}
    return with_leaf(GOOD, **changes) if file in ("crt", "key") else replace(GOOD, **changes)


FILES = st.sampled_from(["ca_crt", "ca_key", "crt", "key"])


@given(
    file=FILES,
    at=st.floats(min_value=0, max_value=1, exclude_max=True),
    flipped=st.integers(min_value=1, max_value=255),
)
@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")  # such as of a negative serial
def test_a_damaged_byte_never_breaks_the_decision(file: str, at: float, flipped: int) -> None:
    good: bytes = getattr(GOOD.leaves[0] if file in ("crt", "key") else GOOD, file)
    contents = bytearray(good)
    contents[int(at * len(good))] ^= flipped

    step = plan(damaged(file, bytes(contents)), FOLDER, NOW)

    assert step.reason


@given(file=FILES, contents=st.binary(max_size=200))
def test_arbitrary_bytes_in_a_file_are_repaired(file: str, contents: bytes) -> None:
    step = plan(damaged(file, contents), FOLDER, NOW)

    assert isinstance(step, RenewAuthority | RenewLeaf)
