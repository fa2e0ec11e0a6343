"""Groups of checks that explain others: a symptom is not reported beside its cause."""

from __future__ import annotations

from typing import Final

ELSEWHERE: Final = ("namespace-missing", "installed-elsewhere")
"""Why objects of the installation may be missing."""

NOT_ON_NODE: Final = ("node-not-ready", "runtime-unsupported", "architecture-unsupported")
"""Why a process cannot work on a node."""

PREVENTED: Final = (
    *ELSEWHERE,
    "settings-unusable",
    "scaled-to-zero",
    "pods-not-created",
    "pod-unscheduled",
    "image-missing",
    "process-crashes",
)
"""Why no container of a process can run."""

NOT_STARTED: Final = (*PREVENTED, "process-starting")
"""Why no container of a process runs."""

NOT_KEPT: Final = (*NOT_STARTED, "right-missing", "node-not-ready")
"""Why the certificate controller neither renews certificates nor repairs webhooks."""

NOT_WORKING: Final = (*NOT_STARTED, "right-missing", "process-not-ready")
"""Why a process does not do its task."""
