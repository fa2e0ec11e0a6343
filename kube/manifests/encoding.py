"""Decodes the bytes of a manifest: UTF-8, or UTF-16 and UTF-32 with the byte order mark that Windows programs write."""

from __future__ import annotations

import codecs
from typing import Final

from .manifest_error import ManifestError

_MARKS: Final = (  # that of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decoded(text: str | bytes, source: str) -> str:
    """Returns the text without a byte order mark.

    Raises:
        ManifestError: the bytes are not in the encoding of their mark, or without a mark not in UTF-8.
    """
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    encoding = next((name for mark, name in _MARKS if text.startswith(mark)), "utf-8")
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        what = f"the byte 0x{text[error.start]:02x} is no {encoding.removesuffix('-sig').upper()}"
        raise ManifestError(source, line, what=what, fix="save it as UTF-8") from None
