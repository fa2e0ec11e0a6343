"""`python -m deploy.image FILE`: builds the image into one file, on Debian 12, without an engine or a registry.

Exit codes: 0 done, 2 bad arguments, 3 a requirement is missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK

from .archive import digest
from .build import NAME, default_cache, image, write_root
from .errors import CannotBuildError


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.image", description=__doc__)
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="what `ctr images import` and `docker load` take"
    )
    wanted.add_argument("--root", type=Path, metavar="DIR", help="the image's files alone, into a new folder")
    arguments = parser.parse_args(argv)
    try:
        if arguments.root:
            write_root(arguments.root)
            return EXIT_OK
        packed = image(default_cache())
    except CannotBuildError as error:
        print(f"halfcard: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    arguments.file.write_bytes(packed)
    print(f"{NAME} {digest(packed)} {len(packed) / 1e6:.1f} MB {arguments.file}")
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
