"""Caller tokens: the first segment of a webhook's path, a secret that proves that the caller is the API server.

Only those who may read webhook configurations see it. A webhook accepts several at a time, so that one can be replaced
under load; the token `WITHOUT` stands for paths that have none, as those of registrations that were made before.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from typing import Final

WITHOUT: Final = ""
_WITHOUT_LINE: Final = "none"
_CHARS: Final = 64
"""256 bits, in letters that the API server allows in a path."""
_TOKEN: Final = re.compile(rf"[0-9a-f]{{{_CHARS}}}")

_IN_TEXT: Final = re.compile(rf"/[0-9a-f]{{{_CHARS}}}/")

Tokens = tuple[str, ...]
"""Accepted tokens, the newest first."""


def read_tokens(text: bytes) -> Tokens:
    """Reads a file with a token on each line, and drops what is none."""
    lines = (WITHOUT if line == _WITHOUT_LINE else line for line in text.decode("ascii", "replace").split())
    return tuple(dict.fromkeys(line for line in lines if line == WITHOUT or _TOKEN.fullmatch(line)))


def written_tokens(tokens: Iterable[str]) -> bytes:
    return "".join(f"{token or _WITHOUT_LINE}\n" for token in tokens).encode()


def path_with(token: str, path: str) -> str:
    """Returns the path to register: /TOKEN/validate/pods."""
    return f"/{token}{path}" if token else path


def split_path(path: str) -> tuple[str, str]:
    """Returns the token of a path and the path of the webhook; `WITHOUT` where no segment could be a token."""
    token, rest = path[1 : _CHARS + 1], path[_CHARS + 1 :]
    return (token, rest) if rest.startswith("/") and _TOKEN.fullmatch(token) else (WITHOUT, path)


def without_tokens(text: str) -> str:
    """Returns a text, such as an error of the API server, without the tokens that it quotes."""
    return _IN_TEXT.sub("/…/", text)


def is_accepted(token: str, accepted: Tokens) -> bool:
    """Compares with each accepted token in a time that does not depend on where they differ."""
    matches = [hmac.compare_digest(token, each) for each in accepted]
    return any(matches)
