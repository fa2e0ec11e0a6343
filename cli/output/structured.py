"""Output for scripts: the same document as JSON or YAML."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

TEXT: Final = "text"
YAML: Final = "yaml"


def add_output_argument(
    parser: argparse.ArgumentParser, *more: str, default: str = TEXT, what: str | None = None
) -> None:
    """Adds `-o`; `more` are forms that only this command has."""
    parser.add_argument("-o", "--output", choices=(TEXT, "json", YAML, *more), default=default, help=what)


def print_document(form: str, document: Any) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    print(_as_yaml(json.loads(text)) if form == YAML else text, end="" if form == YAML else "\n")


def _as_yaml(document: Any) -> str:
    import yaml  # noqa: PLC0415 - most commands read and write none

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
