"""The contents of a chain, a CA and its leaves, and the steps that a plan may return."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cryptography import x509


@dataclass(frozen=True, slots=True)
class StoredLeaf:
    """A stored leaf; one that is older than `asked` is replaced."""

    crt: bytes | None = None
    key: bytes | None = None
    asked: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChainContents:
    """The contents of the files; None for a missing file.

    Attributes:
        copies: for each copy of the bundle for verifiers, our content at each of its places.
        elsewhere: the CAs that verifiers trust now, in case our own bundle is lost.
        known_since: the recorded time at which all copies had the current CA.
        asked: a CA that is older is replaced.
    """

    ca_crt: bytes | None = None
    ca_key: bytes | None = None
    leaves: tuple[StoredLeaf, ...] = ()
    copies: tuple[tuple[bytes, ...], ...] = ()
    elsewhere: bytes = b""
    known_since: datetime | None = None
    asked: datetime | None = None


# --- the steps


@dataclass(frozen=True, slots=True)
class _Step:
    reason: str


@dataclass(frozen=True, slots=True)
class Keep(_Step):
    """Nothing to do now; `needs_action`: an administrator must do the next step."""

    needs_action: bool = False


@dataclass(frozen=True, slots=True)
class RenewAuthority(_Step):
    """Create a CA; the older ones stay trusted, since leaves in use may need them."""

    still_trusted: tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class Trust(_Step):
    """Replace the bundle of trusted CAs; the key stays."""

    authorities: tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class Publish(_Step):
    """Write the bundle to one of its copies."""

    copy: int


@dataclass(frozen=True, slots=True)
class Note(_Step):
    """Record since when all copies have the current CA."""

    known_since: datetime | None


@dataclass(frozen=True, slots=True)
class RenewLeaf(_Step):
    """Create a leaf from the current CA; clients notice nothing."""

    leaf: int


@dataclass(frozen=True, slots=True)
class Refuse(_Step):
    """The files belong to another program, whose keys must not be overwritten."""


Plan = Keep | RenewAuthority | Trust | Publish | Note | RenewLeaf | Refuse
