"""The way without CDI: a container gets a file for every card of the node, and behind the others is nothing.

Which card it is has to be said before anybody knows the pod, so kubelet is told of links that are turned later. The
variables of CDI cannot be set this way: the file of limits alone says what holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from halfcard import names

from ..kubelet.plugin import Granted

_NOTHING: Final = Path("/dev/null")
_CARD: Final = Path(names.DEVICE_FILES).name


class SymlinkInjector:
    """`devices` is the folder of device files, `folder` that of a slot, `minors` the numbers of the node's cards."""

    def __init__(self, devices: Path, folder: Callable[[str], Path], minors: Callable[[], Iterable[int]]) -> None:
        self._devices = devices
        self._folder = folder
        self._minors = minors

    def granted(self, slot: str) -> Granted:
        folder = self._folder(slot)
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        cards = [f"{_CARD}{minor}" for minor in self._minors()]
        for card in cards:
            _turn(folder / card, _NOTHING)
        shared = [(self._devices / Path(inside).name, inside) for inside in names.SHARED_DEVICE_FILES]
        return Granted(
            devices=(
                *((str(folder / card), f"{names.DEVICE_FILES}{card.removeprefix(_CARD)}") for card in cards),
                *((str(host), inside) for host, inside in shared if host.exists()),
            ),
            mounts=((str(folder / Path(names.LIMITS_FILE).name), names.LIMITS_FILE),),
            env={names.LIMITS_VARIABLE: names.LIMITS_FILE},
        )

    def point(self, slot: str, minors: Iterable[int]) -> None:
        """At these cards, and at no other."""
        folder, wanted = self._folder(slot), {f"{_CARD}{minor}" for minor in minors}
        promised = {link.name for link in folder.glob(f"{_CARD}*")} | {f"{_CARD}{minor}" for minor in self._minors()}
        for card in sorted(promised):
            _turn(folder / card, self._devices / card if card in wanted else _NOTHING)


def _turn(link: Path, target: Path) -> None:
    """In one step: a runtime that looks meanwhile finds the one or the other."""
    draft = link.with_name(f".{link.name}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.rename(link)
