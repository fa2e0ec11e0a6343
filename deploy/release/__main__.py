"""`python -m deploy.release DIR`: writes every file of a release; with --check builds all again and compares.

Exit codes: 0 done, 1 a file differs, 2 bad arguments, 3 a requirement is missing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.image.build import default_cache
from deploy.image.errors import CannotBuildError
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK, EXIT_REFUSED

from .artefacts import artefacts, differing


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--check", action="store_true", help="write nothing; make all of it again, without any cache")
    arguments = parser.parse_args(argv)
    try:
        return _check(arguments.folder) if arguments.check else _write(artefacts(default_cache()), arguments.folder)
    except CannotBuildError as error:
        print(f"halfcard: {error}", file=sys.stderr)
        return EXIT_CANNOT_START


def _write(files: Mapping[str, bytes], folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
        print(f"{len(content):>12,}  {folder / name}")
    return EXIT_OK


def _check(folder: Path) -> int:
    with tempfile.TemporaryDirectory() as empty:
        files = artefacts(Path(empty))
    if differs := differing(files, folder):
        print(f"halfcard: not what is made now: {', '.join(differs)}", file=sys.stderr)
        return EXIT_REFUSED
    print(f"{len(files)} files are made again, byte for byte.")
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
