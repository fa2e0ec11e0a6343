"""The one error of reading manifests; its text begins as editors and terminals can follow it: FILE:LINE."""

from __future__ import annotations


class ManifestError(ValueError):
    """A manifest that cannot be read.

    Attributes:
        file: as it was named by the caller.
        line: counted from 1.
        what: what stands there and which rule it breaks.
        fix: what to do.
    """

    def __init__(self, file: str, line: int, *, what: str, fix: str) -> None:
        super().__init__(f"{file}:{line}: {what}; {fix}")
        self.file, self.line, self.what, self.fix = file, line, what, fix
