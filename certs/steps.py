"""What is held of a CA and its leaves, and the steps that may be taken next."""

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
    """Where else the bundle stands: what stands there of ours, at each place."""

    bundles: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ChainContents:
    """The contents of the files; None where there is no file.

    Attributes:
        copies: of the bundle, for whoever verifies.
        elsewhere: what whoever verifies trusts now, should our own bundle be lost.
        known_since: when all copies had the present CA, as it was noted.
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
    """The files belong to somebody else, whose keys we must not overwrite."""

    reason: str


Plan = Keep | RenewAuthority | Trust | Publish | Note | RenewLeaf | Refuse
