"""As whom a request acts: the headers of `--as` and of the fields `as` of a kubeconfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

_IN_HEADER_NAMES: Final = "!#$&'*+^`|~"
"""What a header's name may have beside letters, digits and `-._`; everything else is percent-encoded."""

Header = tuple[str, str]


class Impersonation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user and what belongs to it; empty for no user. Fields are named as in a kubeconfig."""

    user: str = msgspec.field(default="", name="as")
    uid: str = msgspec.field(default="", name="as-uid")
    groups: tuple[str, ...] = msgspec.field(default=(), name="as-groups")
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict, name="as-user-extra")

    def over(self, under: Impersonation) -> Impersonation:
        """Returns the other one with the fields that are set here, as kubectl's options replace those of a file."""
        return Impersonation(
            self.user or under.user, self.uid or under.uid, self.groups or under.groups, self.extra or under.extra
        )

    def headers(self) -> tuple[Header, ...]:
        """Raises ValueError for one that the API server would refuse, or take for another."""
        rest = [("Impersonate-Uid", self.uid)] if self.uid else []
        rest += [("Impersonate-Group", group) for group in self.groups]
        rest += [
            (f"Impersonate-Extra-{_escaped(key)}", value) for key, values in self.extra.items() for value in values
        ]
        if rest and not self.user:
            raise ValueError("groups, a uid or extra fields need a user to act as; add --as, or the field as")
        user = [("Impersonate-User", self.user)] if self.user else []
        return tuple((name, _sendable(value)) for name, value in (*user, *rest))


def read_impersonation(user: Mapping[str, Any]) -> Impersonation:
    """Reads the user of a kubeconfig; raises ValueError for fields of another type."""
    return msgspec.convert(
        {name: user[name] for name in Impersonation.__struct_encode_fields__ if user.get(name)}, Impersonation
    )


def _escaped(key: str) -> str:
    return quote(key, safe=_IN_HEADER_NAMES)


def _sendable(value: str) -> str:
    """Returns the text whose Latin-1 bytes, which are sent, are the value's UTF-8."""
    if not value.isprintable() or value != value.strip():
        raise ValueError(f"got {value!r}; names have no line breaks, control characters or surrounding spaces")
    return value.encode().decode("latin-1")
