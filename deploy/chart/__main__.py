"""`python -m deploy.chart`: writes the generated parts of the chart, and the manifests that helm renders.

Exit codes: 0 done, 3 helm is missing or refuses the chart.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK

from .made import made
from .rendered import CannotRenderError


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.chart", description=__doc__)
    parser.add_argument("--helm", default=shutil.which("helm"), metavar="FILE", help="the program (default: on PATH)")
    arguments = parser.parse_args(argv)
    try:
        for file, make in made(arguments.helm or "helm").items():
            file.write_text(make())
    except CannotRenderError as error:
        print(f"halfcard: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
