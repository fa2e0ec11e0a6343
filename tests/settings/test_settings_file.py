from __future__ import annotations

from pathlib import Path

import pytest

from settings.installation import Settings, SettingsError
from settings.settings_file import load_settings


def test_without_a_file_the_defaults_apply() -> None:
    assert load_settings(None) == Settings()


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}"])
def test_an_empty_file_means_the_defaults(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    assert load_settings(tmp_path / "s.yaml") == Settings()


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("templates: warn\ntrusted_users: [agent]\n")
    assert load_settings(tmp_path / "s.yaml") == Settings.model_validate(
        {"templates": "warn", "trusted_users": ["agent"]}
    )


@pytest.mark.parametrize("raw", [b"a: [", b"\xff\xfe\x00", b"a: 1\nb: 2\n", b"- 1\n", b"text"])
def test_every_line_about_an_invalid_file_names_it(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(raw)
    with pytest.raises(SettingsError) as refused:
        load_settings(path)
    lines = str(refused.value).splitlines()
    assert lines[0].startswith(f"{path}: ")


def test_a_missing_file_is_a_mistake_in_the_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nowhere"):
        load_settings(tmp_path / "nowhere.yaml")
    with pytest.raises(SettingsError, match=str(tmp_path)):
        load_settings(tmp_path)
