"""The error of reading manifests; its text begins with FILE:LINE, which editors and terminals can open."""

from __future__ import annotations

from halfcard.exit_codes import UnreadableError


class ManifestError(UnreadableError, ValueError):
    """A manifest that cannot be read.

    Attributes:
        file: the name that the caller used.
        line: counted from 1.
        what: the text there, and the rule that it breaks.
        fix: what to change.
    """

    def __init__(self, file: str, line: int, *, what: str, fix: str) -> None:
        super().__init__(f"{file}:{line}: {what}; {fix}")
        self.file, self.line, self.what, self.fix = file, line, what, fix

    def as_json(self) -> dict[str, str | int]:
        return {"file": self.file, "line": self.line, "what": self.what, "fix": self.fix}


class NoObjectError(ManifestError):
    """A document with neither `kind` nor `apiVersion`: it may be the file of another program."""
