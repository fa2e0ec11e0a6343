from __future__ import annotations

from pathlib import Path

from devcluster.dev.state import DevFolder


def test_a_shorter_process_id_replaces_a_longer_one(tmp_path: Path) -> None:
    """The kernel starts again with small numbers."""
    folder = DevFolder(tmp_path / "dev")
    with folder.claimed() as lock:
        for pid in (4194304, 32767, 489):
            folder.note(lock, pid)
            assert folder.pid() == pid
