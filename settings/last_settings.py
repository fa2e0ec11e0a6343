"""Keeps the last settings that a process could use, so that a mistake in the current ones does not stop it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .installation import Settings, SettingsError
from .settings_file import load_settings


class ChosenSettings(NamedTuple):
    """`mistake` says why the current file is not used; it is empty if that file is used."""

    settings: Settings
    mistake: str = ""


def load_or_last(path: Path | None, kept: Path) -> ChosenSettings:
    """Reads the settings file and keeps a copy in `kept`; if the file has a mistake, returns the copy.

    Raises:
        SettingsError: the file has a mistake, and there is no copy that can be used.
    """
    try:
        settings = load_settings(path)
    except SettingsError as error:
        return ChosenSettings(_last(kept, error), f"{'; '.join(str(error).splitlines())}; {kept} is used instead")
    with suppress(OSError):  # what cannot be kept can still be used
        _keep(settings, kept)
    return ChosenSettings(settings)


def _last(kept: Path, mistake: SettingsError) -> Settings:
    try:
        if kept.read_bytes():  # the file is empty if power failed while it was written
            return load_settings(kept)
    except (OSError, SettingsError):
        pass
    raise mistake from None


def _keep(settings: Settings, kept: Path) -> None:
    kept.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = kept.with_suffix(".new")
    draft.write_text(settings.model_dump_json(exclude_unset=True), encoding="utf-8")
    draft.rename(kept)
