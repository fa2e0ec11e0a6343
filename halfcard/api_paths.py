"""Builds the paths of pods and Events; names may have any characters."""

from __future__ import annotations

from urllib.parse import quote


def path_of_pod(namespace: str, name: str) -> str:
    return f"{_namespace_path(namespace)}/pods/{quote(name, safe='')}"


def path_of_events(namespace: str) -> str:
    return f"{_namespace_path(namespace)}/events"


def _namespace_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}"
