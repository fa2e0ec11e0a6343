"""Reads the settings file."""

from __future__ import annotations

from pathlib import Path

import yaml

from .installation import Settings, SettingsError, read_settings


def load_settings(path: Path | None) -> Settings:
    """Reads the settings file; None returns the defaults.

    Raises:
        SettingsError: the file cannot be read, or has a mistake.
    """
    if path is None:
        return Settings()
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not YAML: {error}") from error
    if not isinstance(raw, dict | None):
        raise SettingsError(f"{path}: settings are a mapping of keys to values, not a {type(raw).__name__}")
    try:
        return read_settings(raw or {})
    except SettingsError as error:
        raise SettingsError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from error
