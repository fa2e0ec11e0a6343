"""Granting without CDI: links lead to /dev/null until the container is known."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from deviceplugin.inject.symlinks import SymlinkInjector

MINORS: Final = (0, 1, 2)


def way(folder: Path) -> SymlinkInjector:
    (folder / "dev").mkdir(exist_ok=True)
    (folder / "dev" / "nvidiactl").touch()
    return SymlinkInjector(folder / "dev", lambda slot: folder / "slots" / slot, lambda: MINORS)


def links(folder: Path) -> dict[str, str]:
    return {link.name: str(link.readlink()) for link in (folder / "slots" / "s").iterdir()}


def test_allocate_gives_links_for_every_card_that_lead_to_none(tmp_path: Path) -> None:
    granted = way(tmp_path).answer("s")
    slot = tmp_path / "slots" / "s"
    assert granted.devices == (
        *((str(slot / f"nvidia{minor}"), f"/dev/nvidia{minor}") for minor in MINORS),
        (str(tmp_path / "dev" / "nvidiactl"), "/dev/nvidiactl"),
        (str(tmp_path / "dev" / "nvidia-uvm"), "/dev/nvidia-uvm"),
    )
    assert granted.mounts == ((str(slot / "limits.json"), "/etc/halfcard/limits.json"),)
    assert granted.env == {"HALFCARD_LIMITS": "/etc/halfcard/limits.json"} and granted.cdi == ()
    assert set(links(tmp_path).values()) == {"/dev/null"}


def test_fake_cards_need_no_files_of_cuda(tmp_path: Path) -> None:
    by_links = SymlinkInjector(tmp_path / "dev", lambda slot: tmp_path / slot, lambda: (), needed=())
    assert by_links.answer("s").devices == ()


def test_only_the_links_of_granted_cards_lead_to_a_card(tmp_path: Path) -> None:
    by_links = way(tmp_path)
    by_links.answer("s")
    for mine in ((1,), (0, 2)):
        by_links.set_cards("s", mine)
        found = links(tmp_path)
        assert {name for name, target in found.items() if target != "/dev/null"} == {f"nvidia{each}" for each in mine}
        assert all(found[f"nvidia{each}"] == str(tmp_path / "dev" / f"nvidia{each}") for each in mine)


def test_the_next_pod_with_the_ids_finds_links_that_lead_to_none(tmp_path: Path) -> None:
    by_links = way(tmp_path)
    by_links.answer("s")
    by_links.set_cards("s", (1,))
    by_links.answer("s")
    assert set(links(tmp_path).values()) == {"/dev/null"}
