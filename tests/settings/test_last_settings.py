from __future__ import annotations

from pathlib import Path

import pytest

from settings.installation import Settings, SettingsError
from settings.last_settings import ChosenSettings, load_or_last

WANTED = Settings.model_validate(
    {
        "severities": {"HC002": "off"},
        "vcuda_prefixes": [{"prefix": "gpu.example.com"}],
        "time_slicing": {"config": "gpu-operator/slices"},
    }
)


@pytest.fixture
def current(tmp_path: Path) -> Path:
    """The settings file, with settings of every shape."""
    file = tmp_path / "settings.yaml"
    file.write_text(WANTED.model_dump_json(exclude_unset=True))
    return file


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The path of the copy, in a folder that does not exist yet."""
    return tmp_path / "state" / "settings.yaml"


def test_usable_settings_are_used_without_a_mistake(current: Path, kept: Path) -> None:
    assert load_or_last(current, kept) == ChosenSettings(WANTED)


@pytest.mark.parametrize("text", ["packing: tight", "a: [", "- 1"])
def test_after_a_mistake_the_last_usable_settings_apply(current: Path, kept: Path, text: str) -> None:
    load_or_last(current, kept)
    current.write_text(text)
    for _ in range(2):
        settings, mistake = load_or_last(current, kept)
        assert settings == WANTED
        assert mistake.startswith(f"{current}: ") and mistake.endswith(f"{kept} is used instead")
        assert len(mistake.splitlines()) == 1


def test_corrected_settings_replace_the_kept_ones(current: Path, kept: Path) -> None:
    for text in ("packing: spread", "packing: tight", "packing: binpack", "packing: tight"):
        current.write_text(text)
        chosen = load_or_last(current, kept)
    assert chosen.settings.packing == "binpack"


def test_without_kept_settings_a_mistake_is_an_error(current: Path, kept: Path) -> None:
    current.write_text("packing: tight")
    with pytest.raises(SettingsError, match="unknown policy tight"):
        load_or_last(current, kept)


@pytest.mark.parametrize("spoiled", ["", "packing: worse", "{", None])
def test_kept_settings_that_cannot_be_used_leave_the_first_mistake(
    current: Path, kept: Path, spoiled: str | None
) -> None:
    """A torn file, or one of a newer version. An empty file would be the defaults, which were never chosen."""
    current.write_text("packing: tight")
    kept.parent.mkdir()
    kept.mkdir() if spoiled is None else kept.write_text(spoiled)
    with pytest.raises(SettingsError, match="unknown policy tight"):
        load_or_last(current, kept)


def test_a_copy_that_cannot_be_written_stops_nothing(current: Path, kept: Path) -> None:
    kept.parent.write_text("a file where the folder should be")
    assert load_or_last(current, kept) == ChosenSettings(WANTED)
