"""Finds a misspelled resource where another one seems to be missing."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from ..problems import MEMORY_ALONE, SHARE_NEEDS_MEMORY, Problem

_MISSING: Final = frozenset({MEMORY_ALONE.code, SHARE_NEEDS_MEMORY.code})
_RESOURCE: Final = re.compile(r'\["(.+)"\]$')
_ALIKE: Final = 0.85
_LONGEST: Final = 100
_MOST: Final = 50


def respelled(problem: Problem, written: Collection[str]) -> Problem:
    """Returns the problem of a missing resource with another fix, where a container writes one much like it."""
    named = _RESOURCE.search(problem.where) if problem.code in _MISSING and problem.got is None else None
    if named is None:
        return problem
    domain = named[1].partition("/")[0] + "/"
    others = [each for each in written if each.startswith(domain) and len(each) <= _LONGEST][:_MOST]
    found = get_close_matches(named[1], others, 1, _ALIKE)
    return replace(problem, fix=f"rename {found[0]} to {named[1]}") if found else problem
