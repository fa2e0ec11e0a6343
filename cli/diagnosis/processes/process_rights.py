"""Checks that every process may do what it must."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.problems import printable

from ..finding import BROKEN, Check, FoundFault
from ..own_objects import MissingRight
from ..snapshot import Snapshot

_FOLDER: Final = "deploy/chart/halfcard/rbac"
_WORDS_CHARS: Final = 400


def _missing(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Reports one finding for each process and role."""
    found: defaultdict[tuple[str, str, str], list[MissingRight]] = defaultdict(list)
    for each in snapshot.missing_rights:
        found[each.account, each.role, each.file].append(each)
    for (account, role, file), rights in found.items():
        got = f"it may not {', '.join(_words(rights))}: {role} or its binding does not grant it"
        fix = f"apply the shipped {role} and its binding again"
        where = f"ServiceAccount {names.NAMESPACE}/{account}"
        yield FoundFault(where, printable(got, _WORDS_CHARS), fix, f"kubectl apply -f {_FOLDER}/{file}.yaml", account)


def _words(rights: list[MissingRight]) -> Iterator[str]:
    """Formats the verbs of each resource together: `get and list nodes`."""
    verbs: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for each in rights:
        verbs[each.resource, each.namespace].append(each.verb)
    for (resource, namespace), those in verbs.items():
        yield f"{' and '.join(those)} {resource}" + (f" in {namespace}" if namespace else "")


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "right-missing",
        BROKEN,
        "the ServiceAccount of every process has the rights that the chart gives it",
        "Otherwise its task is not done. Needs the right to create `subjectaccessreviews`.",
        _missing,
    ),
)
