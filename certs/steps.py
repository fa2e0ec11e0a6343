"""The contents of a chain, a CA and its leaves, and the steps that a plan may return."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cryptography import x509


@dataclass(frozen=True, slots=True)
class HeldLeaf:
    """`asked`: leaves from before that time are to be replaced."""

    crt: bytes | None = None
    key: bytes | None = None
    asked: datetime | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the bundle: our content at each of its places."""

    bundles: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ChainContents:
    """The contents of the files; None for a missing file.

    Attributes:
        copies: the copies of the bundle for verifiers.
        elsewhere: the CAs that verifiers trust now, in case our own bundle is lost.
        known_since: the recorded time at which all copies had the present CA.
        asked: a CA from before that time is to be replaced.
    """

    ca_crt: bytes | None = None
    ca_key: bytes | None = None
    leaves: tuple[HeldLeaf, ...] = ()
    copies: tuple[Copy, ...] = ()
    elsewhere: bytes = b""
    known_since: datetime | None = None
    asked: datetime | None = None


# --- the steps


@dataclass(frozen=True, slots=True)
class Keep:
    """`is_due`: something is wanted that only people can do."""

    reason: str
    is_due: bool = False


@dataclass(frozen=True, slots=True)
class RenewAuthority:
    """A new CA in front of those before it, which leaves in use may still need."""

    reason: str
    still_trusted: tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class Trust:
    """These CAs from now on; the key stays."""

    reason: str
    authorities: tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """The bundle to one of its copies."""

    reason: str
    copy: int


@dataclass(frozen=True, slots=True)
class Note:
    """Since when all copies have had the present CA."""

    reason: str
    known_since: datetime | None


@dataclass(frozen=True, slots=True)
class RenewLeaf:
    """A new leaf from the present CA; clients notice nothing."""

    reason: str
    leaf: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """The files belong to another program, whose keys must not be overwritten."""

    reason: str


Plan = Keep | RenewAuthority | Trust | Publish | Note | RenewLeaf | Refuse
