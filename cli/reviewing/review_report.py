"""The result of a review: every object with its verdict, what could not be read, and the exit code of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from halfcard.exit_codes import EXIT_NOT_JUDGED, EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from kube.manifests.documents import Document
from kube.manifests.manifest_error import ManifestError
from kube.manifests.unrendered import is_kustomize_kind, kustomize

from ..judge import Item, Judge
from .configurations import configuration_verdict
from .sources import Entry, Skipped


class Reviewed(NamedTuple):
    """An object of a file, and its verdict."""

    document: Document
    item: Item

    def as_json(self) -> dict[str, Any]:
        return {"file": self.document.source_file, "line": self.document.line, **self.item.as_json()}


def reviewed(judge: Judge, document: Document) -> Reviewed:
    item = judge.review(document.obj)
    if is_kustomize_kind(document.obj):
        item = replace(item, not_judged=kustomize(Path(document.source_file)))
    elif verdict := configuration_verdict(document.obj, item.namespace):
        item = replace(item, verdict=verdict)
    return Reviewed(document, item)


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """Everything that a review found, in the order of the input."""

    reviewed: tuple[Reviewed, ...] = ()
    errors: tuple[ManifestError, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @classmethod
    def of(cls, found: Iterable[Reviewed | Entry]) -> ReviewReport:
        every = list(found)
        return cls(
            tuple(each for each in every if isinstance(each, Reviewed)),
            tuple(each for each in every if isinstance(each, ManifestError)),
            tuple(each for each in every if isinstance(each, Skipped)),
        )

    def without_allowed(self) -> ReviewReport:
        return replace(self, reviewed=tuple(each for each in self.reviewed if not each.item.allowed), skipped=())

    def exit_code(self, *, strict: bool) -> int:
        """Returns the code of the worst: an answer that is not complete is worse than a refusal."""
        if self.errors:
            return EXIT_USAGE
        if any(each.item.allowed is False for each in self.reviewed):
            return EXIT_REFUSED
        unjudged = strict and any(each.item.allowed is None for each in self.reviewed)
        return EXIT_NOT_JUDGED if unjudged else EXIT_OK

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [each.as_json() for each in self.reviewed],
            "errors": [each.as_json() for each in self.errors],
            "skipped": [each._asdict() for each in self.skipped],
        }
