"""Checks whether stored pods and templates would be refused when their next pod is created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import WARNING, Check, FoundFault
from ..snapshot import Snapshot


def _refused(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in snapshot.refused:
        fix = "correct it before a node restarts; agents of the system belong in the setting system_workloads"
        yield FoundFault(each.title, each.why, fix)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "workload-refused",
        WARNING,
        "stored pods and templates follow the rules",
        "Running pods stay, but their next pods are refused, perhaps only when a node restarts. `halfcard review"
        " --cluster` lists all problems, also before Halfcard is installed.",
        _refused,
        unless=("settings-unusable",),
    ),
)
