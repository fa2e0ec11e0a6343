"""Decides which caller tokens the webhook accepts, and which one is registered.

A token is replaced in three steps, and no call fails between them: the new one is accepted beside the old one; once
every replica has read it, it is registered; once no API server uses the old one, that is no longer accepted. Each step
is a function of what is stored, so any replica can take the next one.

Where the webhook does not answer, the API server quotes the path in its error to the tenant. So a token lives for an
hour.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from certs.lifetimes import KNOWN_AFTER
from certs.objects import Object
from halfcard.caller_tokens import WITHOUT, Tokens, split_path

TOKEN_LIFE: Final = timedelta(hours=1)
TOKEN_RETIREMENT: Final = timedelta(minutes=5)
"""How long the old token is accepted after the new one was registered: API servers follow the registration."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """After which time what happens."""

    life: timedelta = TOKEN_LIFE
    known_after: timedelta = KNOWN_AFTER
    retired_after: timedelta = TOKEN_RETIREMENT


IN_AN_INSTALLATION: Final = TokenRules()


@dataclass(frozen=True, slots=True)
class HeldTokens:
    """What is stored now.

    Attributes:
        tokens: those that the webhook accepts, the newest first.
        made: when the newest was made.
        since: the recorded time at which only the newest was registered.
        registered: those in the paths of the webhook configurations.
    """

    tokens: Tokens
    made: datetime
    since: datetime | None
    registered: frozenset[str]

    @property
    def newest(self) -> str:
        return self.tokens[0]

    @property
    def is_registered(self) -> bool:
        """Returns whether API servers use the newest and no other."""
        return self.registered == {self.newest}


class TokenStep(NamedTuple):
    """The tokens to store, the time since when only the newest is registered, and why; `is_new`: the first was made."""

    tokens: Tokens
    since: datetime | None
    reason: str
    is_new: bool = False


def registered_tokens(configurations: Iterable[Object | None]) -> frozenset[str]:
    return frozenset(
        split_path(str(((webhook.get("clientConfig") or {}).get("service") or {}).get("path", "")))[0]
        for each in configurations
        for webhook in (each or {}).get("webhooks") or ()
    )


def plan_tokens(held: HeldTokens, rules: TokenRules, *, now: datetime, fresh: str) -> TokenStep | None:
    """Returns the next step; `fresh` is a token that is not in use yet."""
    if not held.tokens:
        return _first(held, fresh)
    if unknown := held.registered - {*held.tokens, WITHOUT}:
        return TokenStep((*sorted(unknown), *held.tokens), None, "the token in use is accepted again", is_new=True)
    if len(held.tokens) > 1:
        return _retirement(held, rules, now)
    if now >= held.made + rules.life:
        return TokenStep((fresh, held.newest), None, "renewed", is_new=True)
    return None


def _first(held: HeldTokens, fresh: str) -> TokenStep:
    """Keeps what API servers use: the Secret was lost, or the registration is older than caller tokens."""
    used = tuple(sorted(held.registered, reverse=True))
    own = used if used and used[0] else (fresh, *used)
    return TokenStep(own, None, "there was none", is_new=True)


def _retirement(held: HeldTokens, rules: TokenRules, now: datetime) -> TokenStep | None:
    if not held.is_registered:
        return None if held.since is None else TokenStep(held.tokens, None, "an older one was registered again")
    if held.since is None:
        return TokenStep(held.tokens, now, "only the newest is registered")
    if now >= held.since + rules.retired_after:
        return TokenStep(held.tokens[:1], None, "the older one is no longer accepted")
    return None


def token_to_register(held: HeldTokens, rules: TokenRules, *, now: datetime, is_replaced: bool) -> str:
    """Returns the newest token that every replica accepts.

    Args:
        held: what is stored.
        rules: how long a replica may need to read a new token.
        now: the time.
        is_replaced: every replica knows of caller tokens; only a registration without one asks for this.
    """
    used = next((token for token in held.tokens[1:] if token in held.registered), None)
    if used is None:
        return held.newest  # no API server uses an accepted one
    is_known = now >= held.made + rules.known_after and (used != WITHOUT or is_replaced)
    return held.newest if is_known else used
