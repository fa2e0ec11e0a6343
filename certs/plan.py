"""Decides what a CA and its leaves need now, and why: in a folder, or in Secrets with copies of the bundle elsewhere.

Invariant: a pure function of the contents, the rules and the time. Each step leaves less to do: from any contents, also
those after a crash between two writes, the steps end at `Keep` or at `Refuse`. A CA is replaced in three steps: the new
one is added to the bundle and its copies; leaves follow once every verifier has surely read it; the old one is removed
once no leaf of it can be shown any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509

from certs.certificate_checks import (
    absence,
    ageing,
    authority_flaw,
    certificates,
    is_ours,
    key_flaw,
    made_at,
    names_of,
    outside_validity,
    signed,
    uses_of,
)
from certs.lifetimes import LAST_CALL, LEAF_LIFE, ChainRules, LeafRules
from certs.server_names import listed
from certs.steps import ChainContents, HeldLeaf, Keep, Note, Plan, Publish, Refuse, RenewAuthority, RenewLeaf, Trust


@dataclass(frozen=True, slots=True)
class _Sight:
    """The decoded contents."""

    held: ChainContents
    rules: ChainRules
    now: datetime
    authorities: tuple[x509.Certificate, ...]
    leaves: tuple[x509.Certificate | None, ...]

    @property
    def present(self) -> x509.Certificate:
        return self.authorities[0]

    def is_of_present(self, leaf: x509.Certificate | None) -> bool:
        return leaf is not None and signed(leaf, self.present)

    @property
    def is_changing(self) -> bool:
        """A leaf is still to follow the present CA."""
        return len(self.authorities) > 1 and not all(map(self.is_of_present, self.leaves))

    @property
    def is_known(self) -> bool:
        """Returns whether every verifier has surely read the present CA, or has never known another one."""
        since = self.held.known_since
        first = not self.held.copies or len(self.authorities) == 1
        return first or (since is not None and self.now >= since + self.rules.known_after)


def plan(held: ChainContents, rules: ChainRules, now: datetime) -> Plan:
    authorities = tuple(certificates(held.ca_crt))
    leaves = tuple(next(iter(certificates(leaf.crt)), None) for leaf in held.leaves)
    if foreign := _foreign(authorities, leaves):
        return Refuse(f"{foreign} was not issued by Halfcard")
    sight = _Sight(held, rules, now, authorities, leaves)
    return next(step for judge in _JUDGES if (step := judge(sight)) is not None)


def _foreign(authorities: Sequence[x509.Certificate], leaves: Sequence[x509.Certificate | None]) -> str | None:
    if not all(map(is_ours, authorities)):
        return "ca.crt"
    return None if all(leaf is None or is_ours(leaf) for leaf in leaves) else "tls.crt"


def _authority(sight: _Sight) -> Plan | None:
    held, now = sight.held, sight.now
    if not sight.authorities:
        return RenewAuthority(absence("ca.crt", held.ca_crt), _elsewhere(sight))
    flaw = authority_flaw(sight.present, now) or key_flaw("ca", held.ca_key, sight.present) or _too_short(sight)
    if flaw is None and _is_asked(held.asked, sight.present, now):
        flaw = "a new CA is asked for"
    return RenewAuthority(flaw, _still_trusted(sight)) if flaw else None


def _elsewhere(sight: _Sight) -> tuple[x509.Certificate, ...]:
    return _usable(sight, [each for each in certificates(sight.held.elsewhere) if is_ours(each)])


def _still_trusted(sight: _Sight) -> tuple[x509.Certificate, ...]:
    """Returns the CAs to keep, also those without a known leaf: a replica may show a leaf that was replaced a moment
    ago.
    """
    return _usable(sight, sight.authorities)


def _usable(sight: _Sight, found: Sequence[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Returns the usable CAs; one that is not valid yet counts, since it becomes valid when a clock is corrected."""
    unique = dict.fromkeys(found)
    return tuple(each for each in unique if signed(each, each) and sight.now < each.not_valid_after_utc)


def _too_short(sight: _Sight) -> str | None:
    """A leaf must not outlive its CA."""
    end = sight.present.not_valid_after_utc
    short = not sight.rules.lasting and end < sight.now + LEAF_LIFE
    return f"the CA ends at {end:%FT%TZ}, before a new leaf would" if short else None


def _is_asked(asked: datetime | None, certificate: x509.Certificate, now: datetime) -> bool:
    """Returns whether a renewal is due; a request dated in the future waits, else the new certificate would be too
    old again.
    """
    return asked is not None and made_at(certificate) < asked <= now


def _adopted(sight: _Sight) -> Plan | None:
    """Adopts the CA of a leaf in use whose CA Secret is lost, as after a restore from a backup, if verifiers trust it.

    All trusted CAs are taken back: a replica may still show the leaf before this one, of another CA.
    """
    trusted = _elsewhere(sight)
    orphans = [leaf for leaf in sight.leaves if leaf is not None and not _issuers(leaf, sight.authorities)]
    if not any(_issuers(leaf, trusted) for leaf in orphans):
        return None
    unique = dict.fromkeys((*sight.authorities, *trusted))
    return Trust("the leaf in use was signed by a CA that is not in ca.crt", tuple(unique))


def _issuers(leaf: x509.Certificate, authorities: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    return [authority for authority in authorities if signed(leaf, authority)]


def _copied(sight: _Sight) -> Plan | None:
    found = [[certificates(bundle) for bundle in copy.bundles] for copy in sight.held.copies]
    wanted = [*sight.authorities]
    behind = next((at for at, bundles in enumerate(found) if any(each != wanted for each in bundles)), None)
    if behind is None:
        return _noted(sight)
    if sight.is_changing and sight.held.known_since and any(sight.present not in each for each in found[behind]):
        return Note("the present CA was taken out of a copy of the bundle: everybody has to see it anew", None)
    return Publish(_difference(found[behind], wanted), behind)


def _noted(sight: _Sight) -> Plan | None:
    if sight.is_changing and sight.held.copies and sight.held.known_since is None:
        return Note("all copies of the bundle have the present CA", sight.now)
    return None


def _difference(bundles: Sequence[Sequence[x509.Certificate]], wanted: Sequence[x509.Certificate]) -> str:
    if not all(bundles):
        return "the bundle is empty there"
    if any(wanted[0] not in each for each in bundles):
        return "the present CA is missing there"
    return "other CAs than ours of now are trusted there"


def _leaves(sight: _Sight) -> Plan | None:
    return next((step for at in range(len(sight.leaves)) if (step := _leaf(sight, at))), None)


def _leaf(sight: _Sight, at: int) -> Plan | None:
    held, leaf = sight.held.leaves[at], sight.leaves[at]
    if leaf is not None and (flaw := _useless(sight, leaf)):
        return RenewLeaf(flaw, at)
    if not sight.is_known:
        return None  # replicas may go on with what they have in memory
    flaw = absence("tls.crt", held.crt) if leaf is None else _leaf_flaw(sight, leaf, at)
    return RenewLeaf(flaw, at) if flaw else None


def _leaf_flaw(sight: _Sight, leaf: x509.Certificate, at: int) -> str | None:
    held, rules = sight.held.leaves[at], sight.rules.leaves[at]
    return key_flaw("tls", held.key, leaf) or _wish(held, leaf, sight.now) or _misfit(sight, leaf, rules)


def _useless(sight: _Sight, leaf: x509.Certificate) -> str | None:
    """Returns why no client can accept the leaf, so that replacing it at once loses nothing."""
    if flaw := outside_validity("the leaf", leaf, sight.now):
        return flaw
    return None if _issuers(leaf, sight.authorities) else "the leaf was not signed by a CA in ca.crt"


def _wish(held: HeldLeaf, leaf: x509.Certificate, now: datetime) -> str | None:
    return "a new leaf is asked for" if _is_asked(held.asked, leaf, now) else None


def _misfit(sight: _Sight, leaf: x509.Certificate, rules: LeafRules) -> str | None:
    if not sight.is_of_present(leaf):
        return _grace_is_over(leaf, sight.now) if rules.stays else "the leaf was signed by a CA that was replaced"
    if (found := names_of(leaf)) != rules.names:
        return f"the leaf answers for {listed(found)}; wanted {listed(rules.names)}"
    if uses_of(leaf) != rules.uses:
        return "the leaf is for other uses than wanted"
    # One that ends together with its CA would be followed by another of the same kind.
    is_last = leaf.not_valid_after_utc >= sight.present.not_valid_after_utc
    return None if is_last else ageing("the leaf", leaf, sight.now)


def _grace_is_over(leaf: x509.Certificate, now: datetime) -> str | None:
    end = leaf.not_valid_after_utc
    return f"the leaf ends at {end:%FT%TZ}, and its CA was replaced" if now >= end - LAST_CALL else None


def _ageing_authority(sight: _Sight) -> Plan | None:
    flaw = None if sight.rules.lasting else ageing("the CA", sight.present, sight.now)
    return RenewAuthority(flaw, _still_trusted(sight)) if flaw else None


def _retirement(sight: _Sight) -> Plan | None:
    leaves = [leaf for leaf in sight.leaves if leaf is not None]
    if len(sight.authorities) == 1 or sight.is_changing or len(leaves) < len(sight.leaves):
        return None
    replaced_at = max(map(made_at, leaves))
    if sight.now < replaced_at + sight.rules.retired_after:
        return Keep(f"the CA before is trusted until {replaced_at + sight.rules.retired_after:%FT%TZ}")
    return Trust(f"no leaf of an older CA is in use since {replaced_at:%FT%TZ}", (sight.present,))


def _rest(sight: _Sight) -> Keep:
    since, lasting = sight.held.known_since, sight.rules.lasting
    if sight.is_changing and not sight.is_known and since:
        return Keep(f"a new CA is being made known; leaves follow at {since + sight.rules.known_after:%FT%TZ}")
    if sight.is_changing and sight.held.copies:
        return Keep(
            "whoever verifies has to be given the new CA by people, before a leaf of it is asked for", is_due=True
        )
    if lasting and (flaw := ageing("the CA", sight.present, sight.now)):
        return Keep(flaw, is_due=True)
    end = min(leaf.not_valid_after_utc for leaf in sight.leaves if leaf is not None)
    return Keep(f"valid until {end:%FT%TZ}")


_JUDGES: Final[tuple[Callable[[_Sight], Plan | None], ...]] = (
    _authority,
    _adopted,
    _copied,
    _leaves,
    _ageing_authority,
    _retirement,
    _rest,
)
