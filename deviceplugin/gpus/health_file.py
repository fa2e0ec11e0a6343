"""The file in our state folder that remembers unhealthy cards."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .card_health import CardHealth
from .health_record import decode_health, encode_health

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAME: Final = "health.json"


class HealthFile:
    """Whole or not there: a machine that loses its power boots, and then it means nothing.

    Attributes:
        trouble: why it could not be written; empty while it is as it should be.
    """

    def __init__(self, state: Path, boot: Path = _BOOT) -> None:
        self._path = state / _NAME
        self._boot = boot.read_text().strip()
        self._saved = encode_health(CardHealth(), self._boot)
        self.trouble = ""

    def load(self) -> CardHealth:
        try:
            health = decode_health(self._path.read_bytes(), self._boot)
        except OSError:
            return CardHealth()
        self._saved = encode_health(health, self._boot)
        return health

    def save(self, health: CardHealth) -> None:
        """Writes where something has changed, or could not be written before."""
        content = encode_health(health, self._boot)
        if content == self._saved:
            return
        try:
            self._write(content)
        except OSError as error:
            self.trouble = f"{self._path}: not written ({error}), so a restart of the agent makes ill cards well"
        else:
            self._saved, self.trouble = content, ""

    def _write(self, content: bytes) -> None:
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        draft.write_bytes(content)
        draft.rename(self._path)
