"""Stores unhealthy cards in a file of our state folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .card_health import CardHealth
from .health_record import decode_health, encode_health

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAME: Final = "health.json"


class HealthFile:
    """The file; it is not synced to disk, since it is void once the machine boots.

    Attributes:
        trouble: why it could not be written; empty after a success.
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
        """Writes the file if its content has changed or the last write failed."""
        content = encode_health(health, self._boot)
        if content == self._saved:
            return
        try:
            self._write(content)
        except OSError as error:
            self.trouble = (
                f"{self._path}: not written ({error}), so unhealthy cards count as healthy after a restart of the agent"
            )
        else:
            self._saved, self.trouble = content, ""

    def _write(self, content: bytes) -> None:
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        draft.write_bytes(content)
        draft.rename(self._path)
