"""Keeps the names of all nodes, and decodes calls that list thousands of them.

kube-scheduler sends the names of nearly all nodes in every call, in the order of its own list, of which its threads
take some tens at a time. Making a string of each name and looking it up cost more than the rest of an answer, mostly in
waits for memory. A decoded name therefore is the known string object, the strings are laid out in memory in the order
of first use, and a call about all nodes looks up none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

_ANY: Final = msgspec.json.Decoder(list[str] | None)
_NOBODY: Final[frozenset[str]] = frozenset()


class NodeNames:
    """The names of nodes with plausible capacity."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {}
        self._in_order = 0
        self._all: frozenset[str] | None = None
        self._decoder: Any = None

    def add(self, name: str) -> None:
        self._own[name] = name
        self._change()

    def remove(self, name: str) -> None:
        del self._own[name]
        self._change()

    def _change(self) -> None:
        self._all = self._decoder = None

    def names(self) -> Iterable[str]:
        return self._own.values()

    def interned(self, name: str) -> str:
        """The text that is known, where there is one."""
        return self._own.get(name, name)

    def read(self, names: msgspec.Raw) -> tuple[list[str] | None, bool]:
        """A list of names, None where it is null; and whether all of them are known.

        Raises:
            msgspec.ValidationError: it is no such list.
        """
        if 2 * self._in_order < len(self._own):
            self._lay_out(_ANY.decode(names) or ())
        if self._own:
            with suppress(msgspec.ValidationError):
                return self._decode_known(names), True
        return _ANY.decode(names), False

    def _lay_out(self, names: Sequence[str]) -> None:
        """Texts that were just read lie one after the other, in the order in which they will be read again."""
        named = {name: name for name in names if name in self._own}
        if 2 * len(named) > len(self._own):
            self._own = named | {name: text for name, text in self._own.items() if name not in named}
            self._in_order = len(named)
            self._change()

    def _decode_known(self, names: msgspec.Raw) -> list[str] | None:
        if self._decoder is None:
            one: Any = Literal[""]
            known = one.copy_with((*self._own.values(),))  # as Literal[*names], of which typing would remember 128
            self._decoder = msgspec.json.Decoder(list[known] | None)  # type: ignore[valid-type]  # made while it runs
        found: list[str] | None = self._decoder.decode(names)
        return found

    def others(self, names: Sequence[str], *, known: bool) -> frozenset[str] | None:
        """Returns all nodes but these; None where these are not all known and distinct.

        Where they are `known` and as many as there are nodes, none is left: a node is never listed twice.
        """
        if known and len(names) == len(self._own):
            return _NOBODY
        if self._all is None:
            self._all = frozenset(self._own.values())
        others = self._all.difference(names)
        return others if len(others) + len(names) == len(self._own) else None
