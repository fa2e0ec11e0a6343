"""Decides what a CA and its leaves need now, and why: in a folder, or in Secrets with copies of the bundle elsewhere.

Invariant: a pure function of the contents, the rules and the time. Each step leaves less to do: from any contents, also
those after a crash between two writes, the steps end at `Keep` or at `Refuse`. A CA is replaced in three steps: the new
one is added to the bundle and its copies; leaves follow once every verifier has certainly read it; the old one is
removed once no leaf of it can be served any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509

from certs.certificate_checks import (
    authority_problem,
    certificates,
    is_ours,
    is_signed_by,
    key_problem,
    made_at,
    missing,
    names_of,
    outside_validity,
    renewal_due,
    uses_of,
)
from certs.lifetimes import LAST_CALL, ChainRules, LeafRules
from certs.server_names import listed
from certs.steps import ChainContents, Keep, Note, Plan, Publish, Refuse, RenewAuthority, RenewLeaf, StoredLeaf, Trust


@dataclass(frozen=True, slots=True)
class _Chain:
    """The decoded contents."""

    held: ChainContents
    rules: ChainRules
    now: datetime
    authorities: tuple[x509.Certificate, ...]
    leaves: tuple[x509.Certificate | None, ...]

    @property
    def current(self) -> x509.Certificate:
        return self.authorities[0]

    def is_of_current(self, leaf: x509.Certificate | None) -> bool:
        return leaf is not None and is_signed_by(leaf, self.current)

    @property
    def is_changing(self) -> bool:
        """Returns whether a leaf of an older CA is still in use."""
        return len(self.authorities) > 1 and not all(map(self.is_of_current, self.leaves))

    @property
    def is_known(self) -> bool:
        """Returns whether every verifier has certainly read the current CA, or has never known another one."""
        since = self.held.known_since
        first = not self.held.copies or len(self.authorities) == 1
        return first or (since is not None and self.now >= since + self.rules.known_after)


def plan(held: ChainContents, rules: ChainRules, now: datetime) -> Plan:
    authorities = tuple(certificates(held.ca_crt))
    leaves = tuple(next(iter(certificates(leaf.crt)), None) for leaf in held.leaves)
    if foreign := _foreign(authorities, leaves):
        return Refuse(f"{foreign} was not issued by Halfcard")
    chain = _Chain(held, rules, now, authorities, leaves)
    return next(step for rule in _RULES if (step := rule(chain)) is not None)


def _foreign(authorities: Sequence[x509.Certificate], leaves: Sequence[x509.Certificate | None]) -> str | None:
    if not all(map(is_ours, authorities)):
        return "ca.crt"
    return None if all(leaf is None or is_ours(leaf) for leaf in leaves) else "tls.crt"


def _authority(chain: _Chain) -> Plan | None:
    held, now = chain.held, chain.now
    if not chain.authorities:
        return RenewAuthority(missing("ca.crt", held.ca_crt), _elsewhere(chain))
    flaw = authority_problem(chain.current, now) or key_problem("ca", held.ca_key, chain.current) or _too_short(chain)
    if flaw is None and _is_asked(held.asked, chain.current, now):
        flaw = "a new CA is requested"
    return RenewAuthority(flaw, _still_trusted(chain)) if flaw else None


def _elsewhere(chain: _Chain) -> tuple[x509.Certificate, ...]:
    return _usable(chain, [each for each in certificates(chain.held.elsewhere) if is_ours(each)])


def _still_trusted(chain: _Chain) -> tuple[x509.Certificate, ...]:
    """Returns the CAs to keep, also those without a known leaf: a replica may show a leaf that was replaced a moment
    ago.
    """
    return _usable(chain, chain.authorities)


def _usable(chain: _Chain, found: Sequence[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Returns the usable CAs; one that is not valid yet counts, since it becomes valid when a clock is corrected."""
    unique = dict.fromkeys(found)
    return tuple(each for each in unique if is_signed_by(each, each) and chain.now < each.not_valid_after_utc)


def _too_short(chain: _Chain) -> str | None:
    """A leaf must not outlive its CA."""
    end = chain.current.not_valid_after_utc
    longest = max(leaf.life for leaf in chain.rules.leaves)
    short = not chain.rules.is_long_lived and end < chain.now + longest
    return f"the CA ends at {end:%FT%TZ}, before a new leaf would" if short else None


def _is_asked(asked: datetime | None, certificate: x509.Certificate, now: datetime) -> bool:
    """Returns whether a renewal is due; a request dated in the future waits, else the new certificate would be too
    old again.
    """
    return asked is not None and made_at(certificate) < asked <= now


def _adopted(chain: _Chain) -> Plan | None:
    """Adopts the CA of a leaf in use whose CA Secret is lost, as after a restore from a backup, if verifiers trust it.

    All trusted CAs are taken back: a replica may still show the leaf before this one, of another CA.
    """
    trusted = _elsewhere(chain)
    orphans = [leaf for leaf in chain.leaves if leaf is not None and not _issuers(leaf, chain.authorities)]
    if not any(_issuers(leaf, trusted) for leaf in orphans):
        return None
    unique = dict.fromkeys((*chain.authorities, *trusted))
    return Trust("the leaf in use was signed by a CA that is not in ca.crt", tuple(unique))


def _issuers(leaf: x509.Certificate, authorities: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    return [authority for authority in authorities if is_signed_by(leaf, authority)]


def _copied(chain: _Chain) -> Plan | None:
    found = [[certificates(bundle) for bundle in copy] for copy in chain.held.copies]
    wanted = [*chain.authorities]
    behind = next((at for at, bundles in enumerate(found) if any(each != wanted for each in bundles)), None)
    if behind is None:
        return _noted(chain)
    if chain.is_changing and chain.held.known_since and any(chain.current not in each for each in found[behind]):
        return Note("the current CA was taken out of a copy of the bundle: every verifier has to read it again", None)
    return Publish(_difference(found[behind], wanted), behind)


def _noted(chain: _Chain) -> Plan | None:
    if chain.is_changing and chain.held.copies and chain.held.known_since is None:
        return Note("all copies of the bundle have the current CA", chain.now)
    return None


def _difference(bundles: Sequence[Sequence[x509.Certificate]], wanted: Sequence[x509.Certificate]) -> str:
    if not all(bundles):
        return "the bundle is empty there"
    if any(wanted[0] not in each for each in bundles):
        return "the current CA is missing there"
    return "other CAs of Halfcard are trusted there"


def _leaves(chain: _Chain) -> Plan | None:
    return next((step for at in range(len(chain.leaves)) if (step := _leaf(chain, at))), None)


def _leaf(chain: _Chain, at: int) -> Plan | None:
    held, leaf = chain.held.leaves[at], chain.leaves[at]
    if leaf is not None and (flaw := _useless(chain, leaf)):
        return RenewLeaf(flaw, at)
    if not chain.is_known:
        return None  # replicas continue with the leaf in memory
    flaw = missing("tls.crt", held.crt) if leaf is None else _leaf_flaw(chain, leaf, at)
    return RenewLeaf(flaw, at) if flaw else None


def _leaf_flaw(chain: _Chain, leaf: x509.Certificate, at: int) -> str | None:
    held, rules = chain.held.leaves[at], chain.rules.leaves[at]
    return key_problem("tls", held.key, leaf) or _wish(held, leaf, chain.now) or _misfit(chain, leaf, rules)


def _useless(chain: _Chain, leaf: x509.Certificate) -> str | None:
    """Returns why no client can accept the leaf, so that replacing it at once loses nothing."""
    if flaw := outside_validity("the leaf", leaf, chain.now):
        return flaw
    return None if _issuers(leaf, chain.authorities) else "the leaf was not signed by a CA in ca.crt"


def _wish(held: StoredLeaf, leaf: x509.Certificate, now: datetime) -> str | None:
    return "a new leaf is requested" if _is_asked(held.asked, leaf, now) else None


def _misfit(chain: _Chain, leaf: x509.Certificate, rules: LeafRules) -> str | None:
    if not chain.is_of_current(leaf):
        return _grace_is_over(leaf, chain.now) if rules.outlives_ca else "the leaf was signed by a CA that was replaced"
    if (found := names_of(leaf)) != rules.names:
        return f"the leaf answers for {listed(found)}; wanted {listed(rules.names)}"
    if uses_of(leaf) != rules.uses:
        return "the leaf is for other uses than wanted"
    # A leaf that expires with its CA would be replaced by another one with the same end.
    if leaf.not_valid_after_utc >= chain.current.not_valid_after_utc:
        return None
    return _short_life(leaf, rules) or renewal_due("the leaf", leaf, chain.now)


def _short_life(leaf: x509.Certificate, rules: LeafRules) -> str | None:
    """Returns why a leaf of an earlier version is replaced; copies of it stay valid until their own end."""
    life = leaf.not_valid_after_utc - made_at(leaf)
    return f"the leaf is valid for {life.days} days; wanted {rules.life.days}" if life < rules.life else None


def _grace_is_over(leaf: x509.Certificate, now: datetime) -> str | None:
    end = leaf.not_valid_after_utc
    return f"the leaf ends at {end:%FT%TZ}, and its CA was replaced" if now >= end - LAST_CALL else None


def _ageing_authority(chain: _Chain) -> Plan | None:
    flaw = None if chain.rules.is_long_lived else renewal_due("the CA", chain.current, chain.now)
    return RenewAuthority(flaw, _still_trusted(chain)) if flaw else None


def _retirement(chain: _Chain) -> Plan | None:
    leaves = [leaf for leaf in chain.leaves if leaf is not None]
    if len(chain.authorities) == 1 or chain.is_changing or len(leaves) < len(chain.leaves):
        return None
    replaced_at = max(map(made_at, leaves))
    if chain.now < replaced_at + chain.rules.retired_after:
        return Keep(f"the previous CA is trusted until {replaced_at + chain.rules.retired_after:%FT%TZ}")
    return Trust(f"no leaf of an older CA is in use since {replaced_at:%FT%TZ}", (chain.current,))


def _rest(chain: _Chain) -> Keep:
    since, lasting = chain.held.known_since, chain.rules.is_long_lived
    if chain.is_changing and not chain.is_known and since:
        return Keep(f"a new CA is being distributed; leaves follow at {since + chain.rules.known_after:%FT%TZ}")
    if chain.is_changing and chain.held.copies:
        return Keep(
            "an administrator must give the new CA to its clients, before a leaf of it is requested", needs_action=True
        )
    if lasting and (flaw := renewal_due("the CA", chain.current, chain.now)):
        return Keep(flaw, needs_action=True)
    end = min(leaf.not_valid_after_utc for leaf in chain.leaves if leaf is not None)
    return Keep(f"valid until {end:%FT%TZ}")


_RULES: Final[tuple[Callable[[_Chain], Plan | None], ...]] = (
    _authority,
    _adopted,
    _copied,
    _leaves,
    _ageing_authority,
    _retirement,
    _rest,
)
