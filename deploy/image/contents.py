"""The contents of the image and what is left out, as plain data with the reason of each entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PYTHON: Final = "3.11"  # the version of Debian 12

TAKEN: Final[Mapping[str, str]] = {
    f"python{PYTHON}-minimal": "the interpreter",
    f"libpython{PYTHON}-minimal": "its first modules",
    f"libpython{PYTHON}-stdlib": "the others",
    "libc6": "under everything",
    "libexpat1": "the interpreter is linked with it",
    "libffi8": "ctypes, by which the driver's library is called",
    "libgcc-s1": "under cryptography, grpcio and pydantic",
    "libssl3": "TLS",
    "libstdc++6": "under grpcio",
    "zlib1g": "the interpreter is linked with it",
}
"""Debian packages."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "gcc-12-base": "has nothing but its licence",
    "libbz2-1.0": "bz2",
    "libcrypt1": "crypt",
    "libdb5.3": "dbm",
    "liblzma5": "lzma",
    "libncursesw6": "curses",
    "libnsl2": "nis",
    "libreadline8": "readline",
    "libsqlite3-0": "sqlite3",
    "libtinfo6": "curses",
    "libtirpc3": "nis",
    "libuuid1": "uuid, which does without",
    "media-types": "mimetypes, which has a table of its own",
    "mime-support": "as media-types",
}
"""Dependencies that are left out, with the Python module that needs them, which no process of Halfcard imports."""

UNUSED: Final = (
    "usr/share/doc/*/[!c]*",  # licences are kept
    "usr/share/doc/*/changelog*",
    "usr/share/lintian",
    "usr/share/man",
    "usr/share/binfmts",
    "usr/share/applications",
    "usr/share/pixmaps",
    "usr/lib/*/gconv",  # conversions between character sets
    "usr/lib/*/audit",
    f"usr/lib/python{PYTHON}/lib2to3",
    f"usr/lib/python{PYTHON}/pydoc_data",
    f"usr/lib/python{PYTHON}/turtle*",
    *(
        f"usr/lib/python{PYTHON}/lib-dynload/{module}.*"
        for module in ("_bz2", "_crypt", "_curses*", "_dbm", "_lzma", "_sqlite3", "_uuid", "nis", "readline")
    ),
)
"""Files of these packages that Halfcard does not need."""

BUILT_WITH_ONLY: Final = "setuptools"
"""Pinned packages that only an editable installation needs."""

PASSWD: Final = "root:x:0:0:root:/:/none\nhalfcard:x:65532:65532:halfcard:/:/none\n"
GROUP: Final = "root:x:0:\nhalfcard:x:65532:\n"
USER: Final = "65532:65532"
WHEELS_FOLDER: Final = "usr/lib/python3/dist-packages"
OWN_FOLDER: Final = f"usr/local/lib/python{PYTHON}/dist-packages"
