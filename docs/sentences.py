"""Reads the docstrings below the fields of a class."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from types import ModuleType


def sentences(module: ModuleType, name: str) -> dict[str, str]:
    """Returns the docstring of each field, on one line."""
    tree = ast.parse(inspect.getsource(module))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    found: dict[str, str] = {}
    for field, below in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            found[field.target.id] = " ".join(str(ast.literal_eval(below.value)).split())
    return found
