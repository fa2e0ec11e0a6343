"""Holds the names of all nodes, and decodes calls that list thousands of them.

kube-scheduler sends the names of nearly all nodes in every call, in the order of its own list, of which its threads
take some tens at a time. Therefore a name is decoded to the string object that is known already: the type of the
decoder is a list of Literal[*names], and msgspec returns the object of the literal. Where this decoder succeeds, all
names are known, and a call that names as many as there are nodes needs no lookup. The strings lie in memory in the
order of their first use. Measured with 5,000 nodes: a warm filter call takes 0.35 ms of CPU, and 0.5 ms if names are
decoded to new strings; making the decoder takes 3 ms after nodes came or left.

`Literal[""].copy_with(names)` makes that type like Literal[*names] would, without the cache of typing, which keeps the
last 128 types, each with all names. It breaks if Python removes `copy_with` from its generic aliases, or if msgspec
makes a new string for a literal: the tests of this module fail then, and decoding with `_ANY_NAMES` alone is correct.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

_ANY_NAMES: Final = msgspec.json.Decoder(list[str] | None)
_NO_NAMES: Final[frozenset[str]] = frozenset()


class NodeNames:
    """The names of nodes with plausible capacity."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._ordered = 0
        self._as_set: frozenset[str] | None = None
        self._decoder: Any = None

    def add(self, name: str) -> None:
        self._names[name] = name
        self._change()

    def remove(self, name: str) -> None:
        del self._names[name]
        self._change()

    def _change(self) -> None:
        self._as_set = self._decoder = None

    def names(self) -> Iterable[str]:
        return self._names.values()

    def interned(self, name: str) -> str:
        """Returns the known string object of a name, or the given one."""
        return self._names.get(name, name)

    def read(self, names: msgspec.Raw) -> tuple[list[str] | None, bool]:
        """Returns the names, None for null, and whether all of them are known.

        Raises:
            msgspec.ValidationError: the value is neither a list of strings nor null.
        """
        if 2 * self._ordered < len(self._names):
            self._reorder(_ANY_NAMES.decode(names) or ())
        if self._names:
            with suppress(msgspec.ValidationError):
                return self._decode_known(names), True
        return _ANY_NAMES.decode(names), False

    def _reorder(self, names: Sequence[str]) -> None:
        """Takes the strings of a call, which lie in memory one after the other, in the order of later calls."""
        named = {name: name for name in names if name in self._names}
        if 2 * len(named) > len(self._names):
            self._names = named | {name: text for name, text in self._names.items() if name not in named}
            self._ordered = len(named)
            self._change()

    def _decode_known(self, names: msgspec.Raw) -> list[str] | None:
        if self._decoder is None:
            one: Any = Literal[""]
            known = one.copy_with((*self._names.values(),))
            self._decoder = msgspec.json.Decoder(list[known] | None)  # type: ignore[valid-type]  # a type made at run time
        found: list[str] | None = self._decoder.decode(names)
        return found

    def others(self, names: Sequence[str], *, known: bool) -> frozenset[str] | None:
        """Returns all other nodes; None where `names` are not all known and distinct.

        As many `known` names as there are nodes leave none: kube-scheduler never lists a node twice.
        """
        if known and len(names) == len(self._names):
            return _NO_NAMES
        if self._as_set is None:
            self._as_set = frozenset(self._names.values())
        others = self._as_set.difference(names)
        return others if len(others) + len(names) == len(self._names) else None
