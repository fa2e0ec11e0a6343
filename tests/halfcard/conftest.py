"""Laws are judged by their truth, not by how busy the machine is."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("halfcard", deadline=None)
settings.load_profile("halfcard")
