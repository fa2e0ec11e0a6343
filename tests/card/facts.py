"""Reads what the tools of a machine and the programs of the tries print. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from halfcard.isolation.shared_files import NO_LIMIT, CardControl

_MIB = 1 << 20


def library_path(ldconfig: str, name: str) -> str:
    """Returns where `ldconfig -p` lists a library of 64 bits; empty where it lists none."""
    found = re.search(rf"^\s*{re.escape(name)} \(libc6,x86-64[^)]*\) => (\S+)$", ldconfig, re.MULTILINE)
    return found[1] if found else ""


def uuid_bytes(uuid: str) -> bytes:
    return bytes.fromhex(uuid.removeprefix("GPU-").replace("-", ""))


def last_answer(output: str) -> Mapping[str, Any]:
    """Returns the JSON object on the last line; programs log whatever they like before it.

    Raises:
        ValueError: the last line is something else.
        TypeError: it is JSON, but no object.
    """
    last = output.strip().rpartition("\n")[2]
    answer = json.loads(last)
    if not isinstance(answer, dict):
        raise TypeError(f"got {last}; a program ends with a JSON object")
    return answer


def control_of(uuid: str, memory_mib: int | None, cores_pct: int | None, context_mib: int) -> CardControl:
    memory = NO_LIMIT if memory_mib is None else memory_mib * _MIB
    cores = NO_LIMIT if cores_pct is None else cores_pct * 10
    return CardControl(uuid_bytes(uuid), memory=memory, share=cores, context=context_mib * _MIB)
