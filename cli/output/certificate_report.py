"""Describes an installation's certificates: which object has which certificate, and until when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cryptography import x509

from certs import objects
from certs.certificate_checks import certificates, is_signed_by
from certs.chain_health import ReadChain
from certs.chain_state import kind_of
from certs.chains import Chain, ObjectPath
from certs.objects import CA_CRT, TLS_CRT, Object, entry
from extender.scheduler_api.scheduler_contact import contact_on

_NOTHING: Final = "nothing"


@dataclass(frozen=True, slots=True)
class CertificateRow:
    """One object; `ends` is None if it has nothing that ends."""

    title: str
    ends: datetime | None
    holds: str

    def days_left(self, now: datetime) -> int | None:
        return None if self.ends is None else max((self.ends - now).days, 0)


def rows(found: ReadChain) -> Iterator[CertificateRow]:
    seen, refused = found
    chain = seen.chain
    for place in (chain.authority, *chain.leaves, *chain.configurations):
        item = seen.items[place]
        if place in refused:
            yield CertificateRow(_title(place), None, "cannot be read")
        elif item is None:
            yield CertificateRow(_title(place), None, "is missing")
        elif place in chain.configurations:
            yield CertificateRow(_title(place), None, _trusted(item))
        else:
            yield _secret(chain, place, item)


def copies(lease: Object) -> Iterator[CertificateRow]:
    """Yields the certificates that schedulers have shown lately."""
    for address, caller in sorted(contact_on(lease).callers.items()):
        yield CertificateRow(f"copy at {address}", caller.ends, f"shown at {objects.written(caller.seen)}")


def _title(place: ObjectPath) -> str:
    return f"{kind_of(place)}/{place.name}"


def _secret(chain: Chain, place: ObjectPath, secret: Object) -> CertificateRow:
    authorities = certificates(entry(secret, CA_CRT))
    if place == chain.authority:
        return CertificateRow(_title(place), _end(authorities), _named(authorities))
    leaves = certificates(entry(secret, TLS_CRT))[:1]
    issuers = [authority for authority in authorities if all(is_signed_by(leaf, authority) for leaf in leaves)]
    signer = f"certificate of {_named(issuers[:1])}" if issuers else "certificate of another CA"
    return CertificateRow(_title(place), _end(leaves), signer if leaves else "no certificate")


def _end(found: list[x509.Certificate]) -> datetime | None:
    return found[0].not_valid_after_utc if found else None


def _trusted(configuration: Object) -> str:
    if why := objects.why_unmanaged(configuration):
        return f"left alone: {why}"
    distinct = {bundle: _named(certificates(bundle)) for bundle in objects.bundles(configuration)}
    return "; ".join(distinct.values()) or _NOTHING


def _named(found: list[x509.Certificate]) -> str:
    names = (authority.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME) for authority in found)
    return ", ".join(str(name[0].value).removeprefix("Halfcard ") for name in names if name) or _NOTHING


def as_json(row: CertificateRow, now: datetime) -> dict[str, Any]:
    ends = None if row.ends is None else objects.written(row.ends)
    return {"object": row.title, "ends": ends, "days_left": row.days_left(now), "holds": row.holds}
