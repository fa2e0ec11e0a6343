"""Reads the contexts, clusters and users of kubeconfig files.

Invariant: what would be ignored is refused.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..manifests.manifest_error import ManifestError
from ..manifests.yaml_documents import parse_yaml
from .access import AccessError, read_text
from .kubeconfig_fields import REMOVED, refused_field

_WAY_OUT: Final = (
    "run `kubectl proxy --port=8001{file}{context}` in another terminal, and repeat the command with"
    " --server http://127.0.0.1:8001"
)


@dataclass(frozen=True, slots=True)
class KubeconfigEntry:
    """A context, a cluster or a user; paths in it are relative to its file."""

    file: Path
    title: str
    fields: Mapping[str, Any]

    def text(self, field: str) -> str:
        return str(self.fields.get(field) or "")

    def beside(self, file: str) -> Path:
        return self.file.parent / file

    def pem(self, field: str) -> str | None:
        """Returns a certificate or key, which is in the entry itself or in a file."""
        if data := self.fields.get(f"{field}-data"):
            try:
                return base64.b64decode(data, validate=True).decode()
            except ValueError:
                raise self.error(f"{field}-data is no base64; copy it again") from None
        return read_text(self.beside(self.text(field))) if self.text(field) else None

    @property
    def place(self) -> str:
        return f"{self.file}: {self.title}"

    def error(self, why: str) -> AccessError:
        return AccessError(f"{self.place}: {why}")


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Files and their contents, merged as kubectl merges them: the first that has a name is the one that counts."""

    contents: Sequence[tuple[Path, Mapping[str, Any]]]
    asked_context: str | None

    def chosen(self) -> KubeconfigEntry:
        current = (str(content.get("current-context") or "") for _, content in self.contents)
        return self.entry("contexts", self.asked_context or next(filter(None, current), ""))

    def entry(self, section: str, name: object) -> KubeconfigEntry:
        items = [*self._items(section)]
        for file, item in items:
            if item.get("name") == name:
                found = item.get(section.removesuffix("s"))
                title = f'{section.removesuffix("s")} "{name}"'
                return self._understood(section, KubeconfigEntry(file, title, found if isinstance(found, dict) else {}))
        files = ", ".join(str(file) for file, _ in self.contents)
        known = ", ".join(dict.fromkeys(str(item.get("name")) for _, item in items)) or "an empty list"
        raise AccessError(f'{files}: {section} has no "{name}", only {known}; add it, or choose another context')

    def _items(self, section: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        for file, content in self.contents:
            yield from ((file, item) for item in content.get(section) or () if isinstance(item, dict))

    def _understood(self, section: str, entry: KubeconfigEntry) -> KubeconfigEntry:
        if entry.fields.get(REMOVED):
            raise entry.error(
                f"{REMOVED} was removed from kubectl 1.26; write the kubeconfig again with the command of your cloud or"
                " identity provider, which writes exec today"
            )
        if field := refused_field(section, entry.fields):
            raise self.only_kubectl(entry, f"has the field {field}, which Halfcard cannot do;")
        return entry

    def only_kubectl(self, entry: KubeconfigEntry, why: str) -> AccessError:
        context = f" --context={shlex.quote(self.asked_context)}" if self.asked_context else ""
        file = f" --kubeconfig={shlex.quote(str(entry.file))}" if len(self.contents) == 1 else ""
        return entry.error(f"{why} {_WAY_OUT.format(file=file, context=context)}")


def read_kubeconfigs(files: Sequence[Path], context: str | None) -> Kubeconfig:
    """Raises AccessError if a file is no kubeconfig."""
    return Kubeconfig([(file, _content(file)) for file in files], context)


def _content(file: Path) -> Mapping[str, Any]:
    try:
        content = next((parsed.value for parsed in parse_yaml(read_text(file), str(file))), None)
    except ManifestError as error:
        raise AccessError(str(error)) from None
    if not isinstance(content, dict):
        raise AccessError(f"{file}: is no kubeconfig; name another file")
    return content
