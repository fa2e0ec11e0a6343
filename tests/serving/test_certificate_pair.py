from __future__ import annotations

from datetime import timedelta

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from serving.certificate_pair import UnusablePairError, read_pair
from tests.serving.authority import NOW, Authority, Pair

AUTHORITY = Authority()
GOOD = AUTHORITY.issue()
OTHER = AUTHORITY.issue()


def test_a_valid_pair_is_read_with_names_and_dates() -> None:
    leaf = read_pair(GOOD.cert, GOOD.key, at=NOW)
    assert leaf.names == ("localhost", "127.0.0.1")
    assert leaf.not_before < NOW < leaf.not_after


def test_the_leaf_is_the_first_certificate_of_a_chain() -> None:
    assert read_pair(GOOD.cert + AUTHORITY.cert, GOOD.key, at=NOW).names[0] == "localhost"


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        (Pair(GOOD.cert, OTHER.key, 0), "does not belong to the certificate"),
        (Pair(b"", GOOD.key, 0), "contains no PEM certificate"),
        (Pair(GOOD.cert[:100], GOOD.key, 0), "contains no PEM certificate"),
        (Pair(GOOD.cert, b"", 0), "contains no unencrypted PEM private key"),
        (Pair(GOOD.cert, GOOD.cert, 0), "contains no unencrypted PEM private key"),
        (AUTHORITY.issue(names=None), "no subject alternative name"),
        (AUTHORITY.issue(usage=ExtendedKeyUsageOID.CLIENT_AUTH), "lacks serverAuth"),
        (AUTHORITY.issue(not_after=NOW - timedelta(minutes=1)), "which does not include the present"),
        (AUTHORITY.issue(not_before=NOW + timedelta(minutes=1)), "which does not include the present"),
    ],
)
def test_an_unusable_pair_is_refused_with_the_reason(pair: Pair, problem: str) -> None:
    with pytest.raises(UnusablePairError, match=problem):
        read_pair(pair.cert, pair.key, at=NOW)
