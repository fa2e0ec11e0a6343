"""Passes grants without CDI: a container gets a link for every card of the node, and only its own links lead to a card.

The device must be named before the pod is known, so kubelet gets links that are set later. CDI's variables cannot be
set this way: only the file of limits is authoritative.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

from halfcard import names

from ..kubelet.messages import Granted

_NOTHING: Final = Path("/dev/null")
_CARD: Final = Path(names.DEVICE_FILES).name


class SymlinkInjector:
    """Sets links.

    Attributes:
        devices: the folder of device files.
        folder: returns that of a slot.
        minors: returns the node's cards.
        needed: the shared files that are answered also if they do not exist yet, because kubelet does not ask again.
    """

    def __init__(
        self,
        devices: Path,
        folder: Callable[[str], Path],
        minors: Callable[[], Iterable[int]],
        needed: Collection[str] = names.CUDA_DEVICE_FILES,
    ) -> None:
        self._devices = devices
        self._folder = folder
        self._minors = minors
        self._needed = needed

    def answer(self, slot: str) -> Granted:
        folder = self._folder(slot)
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        cards = [f"{_CARD}{minor}" for minor in self._minors()]
        for card in cards:
            _relink(folder / card, _NOTHING)
        shared = [(self._devices / Path(inside).name, inside) for inside in names.SHARED_DEVICE_FILES]
        return Granted(
            devices=(
                *((str(folder / card), f"{names.DEVICE_FILES}{card.removeprefix(_CARD)}") for card in cards),
                *((str(host), inside) for host, inside in shared if inside in self._needed or host.exists()),
            ),
            mounts=((str(folder / Path(names.LIMITS_FILE).name), names.LIMITS_FILE),),
            env={names.LIMITS_VARIABLE: names.LIMITS_FILE},
        )

    def set_cards(self, slot: str, minors: Iterable[int]) -> None:
        """Points the links to these cards, and all others to nothing."""
        folder, wanted = self._folder(slot), {f"{_CARD}{minor}" for minor in minors}
        promised = {link.name for link in folder.glob(f"{_CARD}*")} | {f"{_CARD}{minor}" for minor in self._minors()}
        for card in sorted(promised):
            _relink(folder / card, self._devices / card if card in wanted else _NOTHING)


def _relink(link: Path, target: Path) -> None:
    """Replaces a link atomically: a runtime that reads it meanwhile finds the old or the new one."""
    draft = link.with_name(f".{link.name}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.rename(link)
