"""`python -m devcluster.build [GROUP ...]`: builds the cluster's programs once into the cache."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK

from ..errors import CannotStartError
from .binaries import GROUPS
from .builder import build


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devcluster.build", description=__doc__)
    parser.add_argument(
        "group", nargs="*", default=["control-plane"], help=f"{' | '.join(GROUPS)} (default: control-plane)"
    )
    wanted: list[str] = parser.parse_args(arguments).group
    unknown = [name for name in wanted if name not in GROUPS]
    if unknown:
        parser.error(f"no group {unknown[0]!r}: use {', '.join(GROUPS)}")
    try:
        for name in wanted:
            build(name)
    except CannotStartError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
